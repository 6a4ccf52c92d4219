package io.merganser.hadoop.capability;

import io.merganser.hadoop.manifest.Manifest;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Optional;
import org.apache.hadoop.yarn.util.AuxiliaryServiceHelper;

/**
 * The bytes that a shuffle service sends to announce that it reads manifests. YARN passes the
 * metadata of the service to every container. After Hadoop's own bytes (the port, a 4-byte integer;
 * stock readers read nothing more) come {@code "MGSHUFFL"} and the newest version of {@link
 * Manifest} that the service reads, u16 big-endian. If they are missing, the map tasks of the node
 * merge by themselves.
 */
public final class Capability {
  private static final byte[] MAGIC = {'M', 'G', 'S', 'H', 'U', 'F', 'F', 'L'};
  private static final int LENGTH = MAGIC.length + Short.BYTES;

  /** The name under which YARN knows Hadoop's shuffle service. */
  private static final String SHUFFLE_SERVICE = "mapreduce_shuffle";

  private Capability() {}

  /** The metadata that the node's shuffle service sent to this container, null if it has none. */
  public static ByteBuffer serviceMetaData() {
    return AuxiliaryServiceHelper.getServiceDataFromEnv(SHUFFLE_SERVICE, System.getenv());
  }

  /** The stock metadata, from its position to its limit, followed by the capability. */
  public static byte[] appendTo(ByteBuffer stockMetaData) {
    ByteBuffer all = ByteBuffer.allocate(stockMetaData.remaining() + LENGTH);
    all.put(stockMetaData.duplicate()).put(MAGIC).putShort((short) Manifest.VERSION);
    return all.array();
  }

  /**
   * The newest version of manifests that the service with this metadata reads; empty if it is a
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
