package io.merganser.hadoop.service;

import io.merganser.hadoop.segment.Segment;
import java.io.IOException;
import java.io.RandomAccessFile;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.SecureIOUtils;
import org.apache.hadoop.io.nativeio.NativeIO;
import org.apache.hadoop.mapred.ShuffleHandler;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Drops spills that were served from the system's page cache, since hardly any is fetched twice.
 * The setting is that of the stock service for map outputs. As there, nothing happens if Hadoop's
 * native library isn't loaded.
 */
final class PageCache {
  private static final Logger LOG = LoggerFactory.getLogger(PageCache.class);

  private final boolean managed;

  PageCache(Configuration conf) {
    managed =
        conf.getBoolean(
            ShuffleHandler.SHUFFLE_MANAGE_OS_CACHE, ShuffleHandler.DEFAULT_SHUFFLE_MANAGE_OS_CACHE);
  }

  /** Drops an output that was merged to its end. */
  void forget(OutputCatalog.Deferred output) {
    if (!managed) {
      return;
    }
    for (Segment segment : output.segments()) {
      try (RandomAccessFile file =
          SecureIOUtils.openForRandomRead(segment.file().toFile(), "r", output.user(), null)) {
        NativeIO.POSIX
            .getCacheManipulator()
            .posixFadviseIfPossible(
                segment.file().toString(),
                file.getFD(),
                segment.offset(),
                segment.partLength(),
                NativeIO.POSIX.POSIX_FADV_DONTNEED);
      } catch (IOException e) {
        LOG.debug("{} stays in the page cache", segment.file(), e);
      }
    }
  }
}
