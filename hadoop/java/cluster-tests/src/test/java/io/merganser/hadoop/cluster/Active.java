package io.merganser.hadoop.cluster;

import io.merganser.hadoop.config.Keys;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapreduce.MRConfig;
import org.apache.hadoop.mapreduce.MRJobConfig;

/** The settings that switch the plugin on, as in docs/hadoop/hadoop.md. */
final class Active {
  static final String HANDLER = "org.apache.hadoop.mapred.ActiveShuffleHandler";
  static final String COLLECTOR = "org.apache.hadoop.mapred.DeferredMapOutputBuffer";
  static final String SHUFFLE = "org.apache.hadoop.mapreduce.task.reduce.ActiveShuffle";

  private Active() {}

  /** Switches the map side and the reduce side on. */
  static void use(JobConf conf) {
    conf.set(MRJobConfig.MAP_OUTPUT_COLLECTOR_CLASS_ATTR, COLLECTOR);
    conf.set(MRConfig.SHUFFLE_CONSUMER_PLUGIN, SHUFFLE);
    // The spills of these tests are much smaller than those that are worth deferring elsewhere.
    conf.setLong(Keys.MIN_SEGMENT_BYTES, 0);
  }
}
