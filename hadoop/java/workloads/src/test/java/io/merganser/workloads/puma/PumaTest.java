package io.merganser.workloads.puma;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Supplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Each job on some lines whose result can be seen. */
class PumaTest {
  @TempDir Path folder;

  /** Runs a job and returns the lines that it wrote. */
  private List<String> run(Supplier<? extends Tool> job, String input) throws Exception {
    return run(job, input.getBytes(StandardCharsets.UTF_8));
  }

  private List<String> run(Supplier<? extends Tool> job, byte[] input) throws Exception {
    Path in = Files.createTempFile(folder, "in", "");
    Path out = Files.createTempDirectory(folder, "out").resolve("out");
    Files.write(in, input);
    Configuration conf = new Configuration();
    conf.set("mapreduce.framework.name", "local");
    conf.set("fs.defaultFS", "file:///");
    conf.set("hadoop.tmp.dir", folder.resolve("tmp").toString());
    conf.setInt(Job.PROGRESS_MONITOR_POLL_INTERVAL_KEY, 20);
    assertEquals(0, ToolRunner.run(conf, job.get(), new String[] {in.toString(), out.toString()}));
    return lines(out);
  }

  private static List<String> lines(Path output) throws IOException {
    return Files.readAllLines(output.resolve("part-r-00000"));
  }

  @Test
  void words() throws Exception {
    assertEquals(List.of("a\t2", "b\t2", "c\t1"), run(WordCount::new, "a b\fa\tb\n\n \t\r\nc"));
  }

  @Test
  void malformedTextIsReplaced() throws Exception {
    byte[] input = {'a', (byte) 0xC3, ' ', (byte) 0xFF, '\n'};
    assertEquals(List.of("a\uFFFD\t1", "\uFFFD\t1"), run(WordCount::new, input));
  }

  @Test
  void termsOfADocumentTheMostFrequentFirst() throws Exception {
    assertEquals(
        List.of("d1\tb:3 a:2 x:y:1", "d2\tz:1"),
        run(TermVector::new, "d1\tb a b\nd2\tz\nno tab\nd1\ta x:y b\nd3\t \n"));
  }

  @Test
  void documentsOfAWord() throws Exception {
    assertEquals(
        List.of("a\td1\td2", "b\td1"),
        run(DocumentIndex::new, "d2\ta a\nd1\tb a b\nno tab\nd2\ta\n"));
  }

  private static final String MOVIES =
      """
      m1:u1_5,u2_4
      m2:u1_1
      m3:u1_0,u2_6,u3,u4_12,_,u_3x
      m4:u1_3_2020-01-01,u:2_4
      no colon
      m5:
      """;

  @Test
  void reviewsByRating() throws Exception {
    assertEquals(List.of("1\t1", "3\t1", "4\t2", "5\t1"), run(HistogramRatings::new, MOVIES));
  }

  @Test
  void moviesByAverage() throws Exception {
    // The averages are 4.5, 1 and 3.5.
    assertEquals(List.of("1.5\t1", "4.0\t1", "5.0\t1"), run(HistogramMovies::new, MOVIES));
  }

  @Test
  void sequencesOfThreeWords() throws Exception {
    assertEquals(
        List.of("a|b|a|d1\t2", "b|a|b|d1\t1", "x|y|z|d2\t1"),
        run(SequenceCount::new, "d1\ta b a b a\nd2\tx y z\nd3\tx y\nno tab at all\n"));
  }

  @Test
  void documentsOfASequenceByCount() throws Exception {
    assertEquals(
        List.of("a|b|c\t10|d2\t9|d1\t9|d3\tmany|d4", "x|y|z\t1|d1"),
        run(
            RankedInvertedIndex::new,
            """
            a|b|c|d3\t9
            a|b|c|d1\t9
            x|y|z|d1\t1
            a|b|c|d2\t10
            a|b|c|d4\tmany
            no bar\t3
            a|b|c|no tab
            """));
  }
}
