package io.merganser.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.merganser.hadoop.cluster.NodeJob.Done;
import io.merganser.hadoop.cluster.NodeJob.Maps;
import io.merganser.workloads.puma.DocumentIndex;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.TaskCounter;
import org.junit.jupiter.api.Test;

/** A job whose settings name a node on a machine that has none. */
class NodeAbsentTest {
  @Test
  void writesAndCountsAsInStockHadoop() throws Exception {
    Path folder = ClusterUnderTest.folder("node-absent");
    try (Hdfs hdfs = new Hdfs(folder.resolve("hdfs"), 1, 1024, Map.of())) {
      hdfs.write(
          "text", "d1\tsome words\nd2\tother words\n".repeat(100).getBytes(StandardCharsets.UTF_8));
      NodeJob job = new NodeJob(folder, DocumentIndex.WordMapper.class, null, Text.class);
      List<org.apache.hadoop.fs.Path> input = List.of(hdfs.path("text"));
      Done stock = job.run(Maps.STOCK, folder.resolve("none"), input);
      Done ours = job.run(Maps.NODE, folder.resolve("none"), input);
      assertEquals(Map.of("ABSENT", 3L), ours.onHost());
      assertEquals(stock.digests(), ours.digests());
      for (TaskCounter counter :
          List.of(
              TaskCounter.MAP_INPUT_RECORDS,
              TaskCounter.MAP_OUTPUT_RECORDS,
              TaskCounter.MAP_OUTPUT_BYTES,
              TaskCounter.SPILLED_RECORDS)) {
        assertEquals(stock.counter(counter), ours.counter(counter), counter.name());
      }
    }
  }
}
