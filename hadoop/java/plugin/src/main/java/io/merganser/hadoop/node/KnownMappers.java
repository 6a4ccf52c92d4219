package io.merganser.hadoop.node;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.merganser.hadoop.config.Keys;
import io.merganser.hadoop.node.NodeProgram.Combine;
import io.merganser.hadoop.node.NodeProgram.Type;
import java.util.Map;
import java.util.Optional;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.lib.map.RegexMapper;

/**
 * The mappers and combiners that the node can stand in for, by the names of their classes and by
 * the jars that these come from. A job may have a class of its own with the name of one of
 * Hadoop's, such as a copy of its word count that does something else. For another mapper the
 * author of a job says which program does the same, with {@link Keys#NODE_SSDLET}.
 */
final class KnownMappers {
  private static final String EXAMPLES = "org.apache.hadoop.examples.";

  /** What Maven writes into the jar of the examples. */
  private static final String EXAMPLES_PROPERTIES =
      "META-INF/maven/org.apache.hadoop/hadoop-mapreduce-examples/pom.properties";

  private static final String WORKLOADS = "io.merganser.workloads.";
  private static final String NEW_API = "org.apache.hadoop.mapreduce.lib.";
  private static final String OLD_API = "org.apache.hadoop.mapred.lib.";

  private static final String GREP = "grep";

  /** Programs by mapper; all of them write what their mapper writes, record for record. */
  private static final Map<String, String> PROGRAMS =
      Map.ofEntries(
          Map.entry(EXAMPLES + "WordCount$TokenizerMapper", "wordcount"),
          Map.entry(NEW_API + "map.TokenCounterMapper", "wordcount"),
          Map.entry(NEW_API + "map.RegexMapper", GREP),
          Map.entry(OLD_API + "RegexMapper", GREP),
          Map.entry(WORKLOADS + "puma.WordCount$WordMapper", "wordcount"),
          Map.entry(WORKLOADS + "puma.TermVector$DocumentMapper", "term-vector"),
          Map.entry(WORKLOADS + "puma.DocumentIndex$WordMapper", "inverted-index"),
          Map.entry(WORKLOADS + "puma.HistogramMovies$BinMapper", "histogram-movies"),
          Map.entry(WORKLOADS + "puma.HistogramRatings$RatingMapper", "histogram-ratings"),
          Map.entry(WORKLOADS + "puma.SequenceCount$TripleMapper", "sequence-count"),
          Map.entry(
              WORKLOADS + "puma.RankedInvertedIndex$DocumentMapper", "ranked-inverted-index"));

  private static final Map<String, Combine> COMBINERS =
      Map.of(
          EXAMPLES + "WordCount$IntSumReducer", Combine.SUM,
          NEW_API + "reduce.IntSumReducer", Combine.SUM,
          NEW_API + "reduce.LongSumReducer", Combine.SUM,
          OLD_API + "LongSumReducer", Combine.SUM,
          WORKLOADS + "puma.Distinct", Combine.DISTINCT);

  private static final Map<Class<?>, Type> TYPES =
      Map.of(
          Text.class, Type.TEXT,
          IntWritable.class, Type.INT,
          LongWritable.class, Type.LONG);

  /** Characters with a meaning of their own in a regular expression. */
  private static final String META = "\\^$.|?*+()[]{}";

  private static final char REPLACEMENT = '\uFFFD';

  private KnownMappers() {}

  /** The program that does the same as a mapper of a job; empty if none is known. */
  static Optional<String> program(String mapper, JobConf job) {
    return Optional.ofNullable(PROGRAMS.get(mapper)).filter(known -> isMeant(mapper, job));
  }

  /** The effect of a combiner of a job; empty if it isn't known. */
  static Optional<Combine> combine(String combiner, JobConf job) {
    return Optional.ofNullable(COMBINERS.get(combiner)).filter(known -> isMeant(combiner, job));
  }

  /** Whether a job's class with a known name is the known class. */
  private static boolean isMeant(String name, JobConf job) {
    if (name.startsWith(WORKLOADS)) {
      return true;
    }
    Class<?> found = job.getClassByNameOrNull(name);
    if (found == null) {
      return false;
    }
    return name.startsWith(EXAMPLES)
        ? isOfExamples(found)
        : JarOf.of(found).equals(JarOf.of(Mapper.class));
  }

  /**
   * Whether a class comes from a jar of Hadoop's examples, of whatever release. It is the jar of
   * the job, so its place says nothing; but who builds another one has no reason to call it so.
   */
  private static boolean isOfExamples(Class<?> found) {
    return JarOf.of(found).filter(jar -> JarOf.has(jar, EXAMPLES_PROPERTIES)).isPresent();
  }

  /** The type of keys or values of a class; empty if the node doesn't know it. */
  static Optional<Type> type(Class<?> writable) {
    return Optional.ofNullable(TYPES.get(writable));
  }

  /**
   * The arguments of a known mapper's program.
   *
   * @throws OnHostException if the program can't do what the job's settings ask of the mapper
   */
  static String arguments(String program, JobConf job) throws OnHostException {
    if (!program.equals(GREP)) {
      return "";
    }
    String pattern = job.get(RegexMapper.PATTERN, "");
    boolean plain =
        !pattern.isEmpty()
            && pattern
                .chars()
                .noneMatch(c -> META.indexOf(c) >= 0 || Character.isSurrogate((char) c))
            && pattern.indexOf(REPLACEMENT) < 0;
    if (!plain || job.getInt(RegexMapper.GROUP, 0) != 0) {
      throw new OnHostException(
          HostReason.UNKNOWN_MAPPER,
          "the node searches only plain texts, not the pattern " + pattern);
    }
    try {
      return new ObjectMapper().writeValueAsString(Map.of("text", pattern));
    } catch (JsonProcessingException e) {
      throw new AssertionError("a text is always JSON", e);
    }
  }
}
