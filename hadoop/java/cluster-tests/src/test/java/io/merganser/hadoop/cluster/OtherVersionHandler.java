package io.merganser.hadoop.cluster;

import io.merganser.hadoop.capability.Capability;
import java.nio.ByteBuffer;
import org.apache.hadoop.mapred.ActiveShuffleHandler;

/** Our shuffle service of another release, which announces another newest version of manifests. */
public final class OtherVersionHandler extends ActiveShuffleHandler {
  static final String VERSION = "test.shuffle.version";

  @Override
  public synchronized ByteBuffer getMetaData() {
    ByteBuffer ours = super.getMetaData();
    if (ours == null || Capability.versionIn(ours).isEmpty()) {
      return ours;
    }
    // The version is at the end.
    ByteBuffer theirs = ByteBuffer.allocate(ours.remaining()).put(ours).flip();
    theirs.putShort(theirs.limit() - Short.BYTES, (short) getConfig().getInt(VERSION, 0));
    return theirs;
  }
}
