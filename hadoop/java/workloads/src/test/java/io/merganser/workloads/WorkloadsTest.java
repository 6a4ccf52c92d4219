package io.merganser.workloads;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.DataOutputBuffer;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Runs each job on small data in this process, and compares it with a few lines of plain Java. */
class WorkloadsTest {
  @TempDir Path folder;

  private void run(Tool tool, Map<String, String> settings, Object... words) throws Exception {
    Configuration conf = new Configuration();
    conf.set("mapreduce.framework.name", "local");
    conf.set("fs.defaultFS", "file:///");
    conf.set("hadoop.tmp.dir", folder.resolve("tmp").toString());
    conf.setInt(Job.PROGRESS_MONITOR_POLL_INTERVAL_KEY, 20);
    settings.forEach(conf::set);
    String[] args = Arrays.stream(words).map(Object::toString).toArray(String[]::new);
    assertEquals(0, ToolRunner.run(conf, tool, args));
  }

  private static List<Path> parts(Path output) throws IOException {
    try (Stream<Path> files = Files.list(output)) {
      return files
          .filter(file -> file.getFileName().toString().startsWith("part-"))
          .sorted()
          .toList();
    }
  }

  private static byte[] bytes(Path output) throws IOException {
    var all = new java.io.ByteArrayOutputStream();
    for (Path part : parts(output)) {
      all.write(Files.readAllBytes(part));
    }
    return all.toByteArray();
  }

  private static List<String> lines(Path output) throws IOException {
    return new String(bytes(output), StandardCharsets.UTF_8).lines().toList();
  }

  @Test
  void theSameRowsHaveTheSameBytesWithAnyNumberOfMaps() throws Exception {
    for (String kind : List.of("fixed", "text", "users", "visits")) {
      Path one = folder.resolve(kind + 1);
      Path three = folder.resolve(kind + 3);
      run(new Generate(), Map.of(Rows.MAPS, "1"), kind, 99, one);
      run(new Generate(), Map.of(Rows.MAPS, "3"), kind, 99, three);
      assertEquals(3, parts(three).size());
      // The order of splits is kept, so the files one after the other are the same bytes.
      assertArrayEquals(bytes(one), bytes(three), kind);
    }
  }

  @Test
  void theSplitsCoverAllRows() {
    Configuration conf = new Configuration();
    conf.setLong(Rows.ROWS, 10);
    conf.setInt(Rows.MAPS, 4);
    var job = new org.apache.hadoop.mapreduce.task.JobContextImpl(conf, null);
    List<Long> lengths = new ArrayList<>();
    for (var split : new Rows().getSplits(job)) {
      lengths.add(((Rows.Range) split).getLength());
    }
    assertEquals(List.of(2L, 3L, 2L, 3L), lengths);
  }

  @Test
  void recordsOfAnyLengthComeOutInOrder() throws Exception {
    for (int recordBytes : new int[] {10, 100, 4096}) {
      Map<String, String> settings =
          Map.of(Generate.RECORD_BYTES, "" + recordBytes, "mapreduce.job.reduces", "3");
      Path input = folder.resolve("records" + recordBytes);
      Path output = folder.resolve("sorted" + recordBytes);
      run(new Generate(), settings, "fixed", 500, input);
      run(new RecordSort(), settings, input, output);
      assertEquals(3, parts(output).size());
      List<byte[]> expected = records(bytes(input), recordBytes);
      expected.sort((a, b) -> Arrays.compareUnsigned(a, 0, 10, b, 0, 10));
      List<byte[]> got = records(bytes(output), recordBytes);
      assertEquals(expected.size(), got.size());
      for (int i = 0; i < got.size(); i++) {
        assertArrayEquals(expected.get(i), got.get(i));
      }
    }
  }

  private static List<byte[]> records(byte[] all, int recordBytes) {
    List<byte[]> records = new ArrayList<>();
    for (int at = 0; at < all.length; at += recordBytes) {
      records.add(Arrays.copyOfRange(all, at, at + recordBytes));
    }
    return records;
  }

  @Test
  void everyVisitMeetsItsUser() throws Exception {
    Map<String, String> settings =
        Map.of(Generate.USERS, "20", "mapreduce.job.reduces", "2", Rows.MAPS, "2");
    Path users = folder.resolve("users");
    Path visits = folder.resolve("visits");
    Path output = folder.resolve("joined");
    run(new Generate(), settings, "users", 20, users);
    run(new Generate(), settings, "visits", 300, visits);
    run(new RepartitionJoin(), settings, users, visits, output);
    Map<String, String> known = new HashMap<>();
    for (String line : lines(users)) {
      String[] parts = line.split("\t", 2);
      known.put(parts[0], parts[1]);
    }
    List<String> expected = new ArrayList<>();
    for (String line : lines(visits)) {
      String[] parts = line.split("\t", 2);
      expected.add(parts[0] + "\t" + known.get(parts[0]) + "\t" + parts[1]);
    }
    assertEquals(expected.stream().sorted().toList(), lines(output).stream().sorted().toList());
  }

  @Test
  void anIndexListsEveryPlaceInOrderOfTitles() throws Exception {
    Path input = folder.resolve("text");
    Path output = folder.resolve("index");
    run(new Generate(), Map.of(), "text", 50, input);
    run(new InvertedIndex(), Map.of("mapreduce.job.reduces", "2"), input, output);
    Map<String, TreeMap<String, String>> expected = new TreeMap<>();
    for (String line : lines(input)) {
      String[] parts = line.split("\t", 2);
      String[] words = parts[1].split(" ");
      for (int place = 0; place < words.length; place++) {
        expected
            .computeIfAbsent(words[place], unused -> new TreeMap<>())
            .merge(parts[0], "" + place, (a, b) -> a + "," + b);
      }
    }
    List<String> listed = new ArrayList<>();
    expected.forEach(
        (word, titles) -> {
          List<String> all = new ArrayList<>();
          titles.forEach((title, places) -> all.add(title + ":" + places));
          listed.add(word + "\t" + String.join(" ", all));
        });
    assertEquals(listed, lines(output).stream().sorted().toList());
  }

  @Test
  void pairsAreOrderedInBytesAsInObjects() throws IOException {
    List<String> texts = List.of("", "a", "ab", "b", "\u00e9", "x".repeat(200));
    List<TextPair> pairs = new ArrayList<>();
    for (String first : texts) {
      for (String second : texts) {
        TextPair pair = new TextPair();
        pair.set(new Text(first), second);
        pairs.add(pair);
      }
    }
    for (TextPair a : pairs) {
      for (TextPair b : pairs) {
        DataOutputBuffer aBytes = new DataOutputBuffer();
        DataOutputBuffer bBytes = new DataOutputBuffer();
        a.write(aBytes);
        b.write(bBytes);
        int inBytes =
            new TextPair.Order()
                .compare(
                    aBytes.getData(),
                    0,
                    aBytes.getLength(),
                    bBytes.getData(),
                    0,
                    bBytes.getLength());
        assertEquals(Integer.signum(a.compareTo(b)), Integer.signum(inBytes));
        int first =
            new TextPair.First()
                .compare(
                    aBytes.getData(),
                    0,
                    aBytes.getLength(),
                    bBytes.getData(),
                    0,
                    bBytes.getLength());
        assertEquals(Integer.signum(a.first.compareTo(b.first)), Integer.signum(first));
      }
    }
  }

  @Test
  void aChecksumDistinguishesOrderAndContent() throws IOException {
    String sorted = of("a\t1\nb\t2\nc\n");
    assertTrue(sorted.contains("\"records\": 3, \"bytes\": 7"), sorted);
    assertTrue(sorted.endsWith("\"sorted\": true}"), sorted);
    String turned = of("b\t2\na\t1\nc\n");
    assertTrue(turned.endsWith("\"sorted\": false}"), turned);
    assertEquals(field(sorted, "sum"), field(turned, "sum"));
    assertTrue(!field(sorted, "crc").equals(field(turned, "crc")));
    assertTrue(!field(sorted, "sum").equals(field(of("a\t1\nb\t3\nc\n"), "sum")));
  }

  private static String of(String lines) throws IOException {
    Checksum.Content content = new Checksum.Content();
    content.addLines(new ByteArrayInputStream(lines.getBytes(StandardCharsets.UTF_8)));
    return content.json("part");
  }

  private static String field(String json, String name) {
    return json.replaceAll(".*\"" + name + "\": \"([0-9a-f]+)\".*", "$1");
  }
}
