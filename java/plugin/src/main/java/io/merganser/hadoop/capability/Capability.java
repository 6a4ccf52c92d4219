package io.merganser.hadoop.capability;

import io.merganser.hadoop.manifest.Manifest;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Optional;

/**
 * What a shuffle service that reads manifests adds to the metadata which YARN hands to every
 * container: behind Hadoop's own bytes (the port, a 4-byte integer, of which stock readers take no
 * more), {@code "MGSHUFFL"} and the newest version of {@link Manifest} that it reads, u16
 * big-endian. A node whose service adds nothing merges nothing, and map tasks there do so
 * themselves.
 */
public final class Capability {
  private static final byte[] MAGIC = {'M', 'G', 'S', 'H', 'U', 'F', 'F', 'L'};
  private static final int LENGTH = MAGIC.length + Short.BYTES;

  private Capability() {}

  /** The stock metadata, from its position to its limit, with the capability behind it. */
  public static byte[] appendTo(ByteBuffer stockMetaData) {
    ByteBuffer all = ByteBuffer.allocate(stockMetaData.remaining() + LENGTH);
    all.put(stockMetaData.duplicate()).put(MAGIC).putShort((short) Manifest.VERSION);
    return all.array();
  }

  /**
   * The newest version of manifests that the service behind this metadata reads; none if it is a
   * stock service, or if there is no metadata.
   */
  public static Optional<Integer> versionIn(ByteBuffer metaData) {
    if (metaData == null || metaData.remaining() < LENGTH) {
      return Optional.empty();
    }
    byte[] last = new byte[LENGTH];
    metaData.duplicate().position(metaData.limit() - LENGTH).get(last);
    if (!Arrays.equals(last, 0, MAGIC.length, MAGIC, 0, MAGIC.length)) {
      return Optional.empty();
    }
    return Optional.of(ByteBuffer.wrap(last).getShort(MAGIC.length) & 0xFFFF);
  }
}
