package io.merganser.hadoop.node;

import io.merganser.hadoop.segment.Segment;
import io.merganser.hadoop.segment.SpillFile;
import io.merganser.hadoop.segment.SpillFile.KeyValue;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.StringTokenizer;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.lib.input.FileSplit;
import org.apache.hadoop.mapreduce.lib.input.LineRecordReader;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;

/**
 * The words of a split, counted with Hadoop's own reader and written by its own writer.
 *
 * @param lines the lines of the split
 * @param words its words
 * @param outputBytes the bytes of all words and ones
 * @param spills the sorted words with their counts
 */
record CountedWords(long lines, long words, long outputBytes, List<CountedWords.Spill> spills) {
  /** A spill as the node sends it. */
  record Spill(byte[] bytes, List<Segment> segments, long records) {}

  /**
   * Counts the words of a split.
   *
   * @param spills the number of spills; the lines are dealt out to them in turn
   */
  static CountedWords of(Path file, AskedMap map, int spills) throws IOException {
    Configuration conf = new Configuration(false);
    var path = new org.apache.hadoop.fs.Path(file.toUri());
    FileSplit split = new FileSplit(path, map.start(), map.end() - map.start(), null);
    List<List<Text>> words = new ArrayList<>();
    for (int i = 0; i < spills; i++) {
      words.add(new ArrayList<>());
    }
    long lines = 0;
    long total = 0;
    long bytes = 0;
    try (LineRecordReader reader = new LineRecordReader()) {
      reader.initialize(split, new TaskAttemptContextImpl(conf, new TaskAttemptID()));
      while (reader.nextKeyValue()) {
        StringTokenizer tokens = new StringTokenizer(reader.getCurrentValue().toString());
        while (tokens.hasMoreTokens()) {
          Text word = new Text(tokens.nextToken());
          words.get((int) (lines % spills)).add(word);
          total++;
          bytes += KeyValue.of(word, new IntWritable(1)).key().length + Integer.BYTES;
        }
        lines++;
      }
    }
    List<Spill> made = new ArrayList<>();
    for (List<Text> some : words) {
      made.add(spill(some, map.partitions(), map.combine() != 0));
    }
    return new CountedWords(lines, total, bytes, made);
  }

  /** A spill without records. */
  static Spill empty(int partitions) throws IOException {
    return spill(List.of(), partitions, true);
  }

  private static Spill spill(List<Text> words, int partitions, boolean combined)
      throws IOException {
    List<Map<Text, Integer>> counts = new ArrayList<>();
    for (int i = 0; i < partitions; i++) {
      counts.add(new TreeMap<>());
    }
    for (Text word : words) {
      int partition = (word.hashCode() & Integer.MAX_VALUE) % partitions;
      counts.get(partition).merge(word, 1, Integer::sum);
    }
    long records = 0;
    List<List<KeyValue>> segments = new ArrayList<>();
    for (Map<Text, Integer> partition : counts) {
      List<KeyValue> all = new ArrayList<>();
      partition.forEach(
          (word, count) -> {
            for (int i = 0; i < (combined ? 1 : count); i++) {
              all.add(KeyValue.of(word, new IntWritable(combined ? count : 1)));
            }
          });
      records += all.size();
      segments.add(all);
    }
    Path scratch = Files.createTempFile("spill", null);
    try {
      List<Segment> written = SpillFile.write(scratch, segments);
      return new Spill(Files.readAllBytes(scratch), written, records);
    } finally {
      Files.delete(scratch);
    }
  }
}
