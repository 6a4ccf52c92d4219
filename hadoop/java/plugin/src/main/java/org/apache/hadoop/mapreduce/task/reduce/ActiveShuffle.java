package org.apache.hadoop.mapreduce.task.reduce;

import org.apache.hadoop.mapred.ShuffleConsumerPlugin;

/**
 * Hadoop's shuffle with another merge of the fetched map outputs: {@link ActiveMergeManager} merges
 * once, while the reducer reads. A job or a cluster chooses it with {@code
 * mapreduce.job.reduce.shuffle.consumer.plugin.class}. It works with any server of map outputs.
 *
 * @param <K> the map output's keys
 * @param <V> the map output's values
 */
public class ActiveShuffle<K, V> extends Shuffle<K, V> {
  private ActiveMergeManager<K, V> merger;

  @Override
  @SuppressWarnings({"rawtypes", "unchecked"}) // As Hadoop declares it.
  protected MergeManager<K, V> createMergeManager(ShuffleConsumerPlugin.Context context) {
    merger = new ActiveMergeManager<>((ShuffleConsumerPlugin.Context<K, V>) context, this);
    return merger;
  }

  /** Called when the reducer has returned. Drops the records that it did not read. */
  @Override
  public void close() {
    super.close();
    merger.release();
  }
}
