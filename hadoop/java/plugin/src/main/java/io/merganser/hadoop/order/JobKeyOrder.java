package io.merganser.hadoop.order;

import io.merganser.hadoop.config.Keys;
import java.util.Map;
import java.util.Optional;
import org.apache.hadoop.io.BooleanWritable;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.DoubleWritable;
import org.apache.hadoop.io.FloatWritable;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.MD5Hash;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.RawComparator;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.VIntWritable;
import org.apache.hadoop.io.VLongWritable;
import org.apache.hadoop.io.WritableComparator;
import org.apache.hadoop.io.serializer.SerializationFactory;
import org.apache.hadoop.io.serializer.WritableSerialization;
import org.apache.hadoop.mapred.JobConf;

/** Finds the {@link KeyOrder} of a job: a registered one, or that of a comparator of Hadoop. */
public final class JobKeyOrder {
  /** The comparators that Hadoop registers for its own key classes. */
  private static final Map<Class<?>, String> OF_COMPARATOR =
      Map.ofEntries(
          Map.entry(Text.Comparator.class, "text"),
          Map.entry(BytesWritable.Comparator.class, "bytes"),
          Map.entry(IntWritable.Comparator.class, "int"),
          Map.entry(LongWritable.Comparator.class, "long"),
          Map.entry(LongWritable.DecreasingComparator.class, "long:desc"),
          Map.entry(FloatWritable.Comparator.class, "float"),
          Map.entry(DoubleWritable.Comparator.class, "double"),
          Map.entry(BooleanWritable.Comparator.class, "boolean"),
          Map.entry(NullWritable.Comparator.class, "null"),
          Map.entry(MD5Hash.Comparator.class, "fixed:16"));

  /**
   * The key classes for which those comparators are meant, and two classes without a comparator. A
   * description holds only for these pairs: a comparator may treat keys of another class otherwise.
   */
  private static final Map<Class<?>, String> OF_KEY =
      Map.ofEntries(
          Map.entry(Text.class, "text"),
          Map.entry(BytesWritable.class, "bytes"),
          Map.entry(IntWritable.class, "int"),
          Map.entry(LongWritable.class, "long"),
          Map.entry(FloatWritable.class, "float"),
          Map.entry(DoubleWritable.class, "double"),
          Map.entry(BooleanWritable.class, "boolean"),
          Map.entry(NullWritable.class, "null"),
          Map.entry(MD5Hash.class, "fixed:16"),
          Map.entry(VIntWritable.class, "vint"),
          Map.entry(VLongWritable.class, "vlong"));

  private JobKeyOrder() {}

  /**
   * The order of a job's keys. A registration comes first: under {@link Keys#ORDER_PREFIX}, for the
   * class of the comparator or, if the keys compare themselves, for the class of the keys. Without
   * one, Hadoop's own comparators of its own key classes are known. Empty for all others.
   *
   * @throws IllegalArgumentException if the registered description is malformed
   */
  public static Optional<KeyOrder> of(JobConf job) {
    RawComparator<?> comparator = job.getOutputKeyComparator();
    Class<?> comparatorClass = comparator.getClass();
    Class<?> keyClass = job.getMapOutputKeyClass();
    Optional<KeyOrder> registered = registered(job, comparator);
    if (registered.isPresent()) {
      return registered;
    }
    boolean comparesItself = comparatorClass == WritableComparator.class;
    String ofKey = OF_KEY.get(keyClass);
    String ofComparator = comparesItself ? ofKey : OF_COMPARATOR.get(comparatorClass);
    boolean meantForEachOther =
        ofKey != null
            && ofComparator != null
            && (ofComparator.equals(ofKey) || ofComparator.equals(ofKey + ":desc"));
    boolean asWritable =
        new SerializationFactory(job).getSerialization(keyClass) instanceof WritableSerialization;
    return meantForEachOther && asWritable
        ? Optional.of(KeyOrder.parse(ofComparator))
        : Optional.empty();
  }

  /** Whether {@link #of} comes from a registration, which may be wrong. */
  public static boolean isRegistered(JobConf job) {
    return registered(job, job.getOutputKeyComparator()).isPresent();
  }

  /** The name of the setting that registers, or would register, the order of a job's keys. */
  public static String setting(JobConf job) {
    return setting(job, job.getOutputKeyComparator());
  }

  private static String setting(JobConf job, RawComparator<?> comparator) {
    Class<?> named =
        comparator.getClass() == WritableComparator.class
            ? job.getMapOutputKeyClass()
            : comparator.getClass();
    return Keys.ORDER_PREFIX + named.getName();
  }

  private static Optional<KeyOrder> registered(JobConf job, RawComparator<?> comparator) {
    String key = setting(job, comparator);
    String description = job.getTrimmed(key, "");
    if (description.isEmpty()) {
      return Optional.empty();
    }
    try {
      return Optional.of(KeyOrder.parse(description));
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(key + ": " + e.getMessage(), e);
    }
  }
}
