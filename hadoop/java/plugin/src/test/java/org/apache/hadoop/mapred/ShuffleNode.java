package org.apache.hadoop.mapred;

import io.merganser.hadoop.manifest.Manifest;
import io.merganser.hadoop.node.NodeMetrics;
import io.merganser.hadoop.order.KeyOrder;
import io.merganser.hadoop.service.MergeMetrics;
import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.OutputStream;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.function.Consumer;
import java.util.stream.Stream;
import javax.crypto.SecretKey;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.DataOutputBuffer;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.WritableUtils;
import org.apache.hadoop.mapreduce.security.token.JobTokenIdentifier;
import org.apache.hadoop.mapreduce.security.token.JobTokenSecretManager;
import org.apache.hadoop.metrics2.AbstractMetric;
import org.apache.hadoop.metrics2.MetricsSource;
import org.apache.hadoop.metrics2.MetricsSystem;
import org.apache.hadoop.metrics2.impl.MetricsCollectorImpl;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.server.api.ApplicationInitializationContext;
import org.apache.hadoop.yarn.server.api.ApplicationTerminationContext;
import org.apache.hadoop.yarn.server.api.AuxiliaryLocalPathHandler;

/** A node with the shuffle service, one local dir and one job. Tests write its map outputs. */
final class ShuffleNode implements AutoCloseable {
  static final String USER = System.getProperty("user.name");
  static final ApplicationId APPLICATION = ApplicationId.newInstance(1111, 1);
  static final String JOB = "job_1111_0001";

  /** A record: keys have the order of Text, values are any bytes. */
  record Pair(String key, byte[] value) {}

  final Path localDir;
  final ActiveShuffleHandler service = new ActiveShuffleHandler();
  private final SecretKey key;
  private int port;

  /** Starts the service; {@code settings} override those of all tests. */
  ShuffleNode(Path localDir, Consumer<Configuration> settings) throws Exception {
    this(localDir, settings, null, true);
  }

  ShuffleNode(
      Path localDir,
      Consumer<Configuration> settings,
      org.apache.hadoop.fs.Path recovery,
      boolean announceJob)
      throws Exception {
    this.localDir = localDir;
    Configuration conf = new Configuration();
    conf.setInt(ShuffleHandler.SHUFFLE_PORT_CONFIG_KEY, 0);
    settings.accept(conf);
    service.setAuxiliaryLocalPathHandler(new OneDir(localDir));
    if (recovery != null) {
      service.setRecoveryPath(recovery);
    }
    service.init(conf);
    service.start();
    port = ShuffleHandler.deserializeMetaData(service.getMetaData());
    JobTokenIdentifier identifier = new JobTokenIdentifier(new Text(USER));
    Token<JobTokenIdentifier> token =
        new Token<>(identifier.getBytes(), "password".getBytes(), new Text("kind"), new Text("s"));
    key = JobTokenSecretManager.createSecretKey(token.getPassword());
    if (announceJob) {
      service.initializeApplication(
          new ApplicationInitializationContext(
              USER, APPLICATION, ShuffleHandler.serializeServiceData(token)));
    }
  }

  int port() {
    return port;
  }

  SecretKey key() {
    return key;
  }

  void endJob() {
    service.stopApplication(new ApplicationTerminationContext(APPLICATION));
  }

  ReduceClient client() throws IOException {
    return new ReduceClient(port, key);
  }

  /** The present value of a metric of the service. */
  long metric(String name) {
    return metric(service.ms, name);
  }

  /** A metric of the node on which maps run. */
  long nodeMetric(String name) {
    return metric(service.ms, NodeMetrics.NAME, name);
  }

  static long metric(MetricsSystem system, String name) {
    return metric(system, MergeMetrics.NAME, name);
  }

  static long metric(MetricsSystem system, String sourceName, String name) {
    MetricsSource source = system.getSource(sourceName);
    MetricsCollectorImpl collector = new MetricsCollectorImpl();
    source.getMetrics(collector, true);
    for (AbstractMetric metric : collector.getRecords().get(0).metrics()) {
      if (metric.name().equals(name)) {
        return metric.value().longValue();
      }
    }
    throw new AssertionError("no metric " + name);
  }

  static String attempt(int map) {
    return String.format("attempt_1111_0001_m_%06d_0", map);
  }

  Path applicationDir() {
    return localDir.resolve("usercache/" + USER + "/appcache/" + APPLICATION);
  }

  Path spill(int map, int spill) {
    return applicationDir().resolve(attempt(map) + "_spill_" + spill + ".out");
  }

  Path fileOut(int map) {
    return applicationDir().resolve("output/" + attempt(map) + "/file.out");
  }

  /**
   * Writes a map output whose merge is deferred.
   *
   * @param spills records by spill and partition, in order
   */
  void writeDeferred(int map, List<List<List<Pair>>> spills) throws IOException {
    Files.createDirectories(fileOut(map).getParent());
    int partitions = spills.get(0).size();
    List<Manifest.Spill> named = new ArrayList<>();
    for (int i = 0; i < spills.size(); i++) {
      long[] lengths = new long[partitions];
      try (OutputStream out = Files.newOutputStream(spill(map, i))) {
        for (int p = 0; p < partitions; p++) {
          byte[] segment = segment(spills.get(i).get(p));
          lengths[p] = segment.length;
          out.write(segment);
        }
      }
      named.add(new Manifest.Spill(spill(map, i).getFileName().toString(), lengths));
    }
    Manifest manifest = new Manifest(KeyOrder.parse("text"), named);
    Files.write(fileOut(map), manifest.toBytes());
    long[] merged = new long[partitions];
    for (int p = 0; p < partitions; p++) {
      merged[p] = manifest.partLength(p);
    }
    writeIndex(map, merged);
  }

  /** Writes a deferred map output of one sparse spill, with one key of {@code keyBytes} zeros. */
  void writeSparseKey(int map, int keyBytes) throws IOException {
    Files.createDirectories(fileOut(map).getParent());
    DataOutputBuffer head = new DataOutputBuffer();
    WritableUtils.writeVInt(head, keyBytes);
    WritableUtils.writeVInt(head, 0);
    long length = head.getLength() + (long) keyBytes + 6;
    try (RandomAccessFile out = new RandomAccessFile(spill(map, 0).toFile(), "rw")) {
      out.write(head.getData(), 0, head.getLength());
      out.setLength(length);
    }
    String name = spill(map, 0).getFileName().toString();
    Manifest.Spill spill = new Manifest.Spill(name, new long[] {length});
    Files.write(fileOut(map), new Manifest(KeyOrder.parse("text"), List.of(spill)).toBytes());
    writeIndex(map, new long[] {length});
  }

  /** Writes the map output that Hadoop would have made of these spills. */
  void writeStock(int map, List<List<List<Pair>>> spills) throws IOException {
    Files.createDirectories(fileOut(map).getParent());
    long[] lengths = new long[spills.get(0).size()];
    try (OutputStream out = Files.newOutputStream(fileOut(map))) {
      for (int p = 0; p < lengths.length; p++) {
        byte[] segment = merged(spills, p);
        lengths[p] = segment.length;
        out.write(segment);
      }
    }
    writeIndex(map, lengths);
  }

  private void writeIndex(int map, long[] lengths) throws IOException {
    SpillRecord index = new SpillRecord(lengths.length);
    long offset = 0;
    for (int p = 0; p < lengths.length; p++) {
      index.putIndex(new IndexRecord(offset, lengths[p] - 4, lengths[p]), p);
      offset += lengths[p];
    }
    index.writeToFile(
        new org.apache.hadoop.fs.Path(fileOut(map) + ".index"), new JobConf(service.getConfig()));
  }

  /** The bytes of one partition as an eager merge writes them. */
  static byte[] merged(List<List<List<Pair>>> spills, int partition) throws IOException {
    List<Pair> all = new ArrayList<>();
    for (List<List<Pair>> spill : spills) {
      all.addAll(spill.get(partition));
    }
    all.sort(Comparator.comparing(pair -> new Text(pair.key)));
    return segment(all);
  }

  /** The bytes of a segment, made by Hadoop's own writer. */
  static byte[] segment(List<Pair> pairs) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    FSDataOutputStream out = new FSDataOutputStream(bytes, null);
    IFile.Writer<Text, BytesWritable> writer =
        new IFile.Writer<>(new Configuration(), out, Text.class, BytesWritable.class, null, null);
    for (Pair pair : pairs) {
      writer.append(new Text(pair.key), new BytesWritable(pair.value));
    }
    writer.close();
    out.flush();
    return bytes.toByteArray();
  }

  /** Spills of random records. They share some keys, and some partitions are empty. */
  static List<List<List<Pair>>> randomSpills(
      Random random, int spills, int partitions, int bytesEach, int valueBytesMax) {
    List<List<List<Pair>>> made = new ArrayList<>();
    for (int s = 0; s < spills; s++) {
      List<List<Pair>> spill = new ArrayList<>();
      for (int p = 0; p < partitions; p++) {
        List<Pair> pairs = new ArrayList<>();
        boolean empty = partitions > 2 && (p + s) % partitions == 2;
        for (int bytes = 0; !empty && bytes < bytesEach; ) {
          byte[] value = new byte[random.nextInt(valueBytesMax)];
          random.nextBytes(value);
          pairs.add(new Pair("key" + random.nextInt(1000), value));
          bytes += value.length + 8;
        }
        pairs.sort(Comparator.comparing(pair -> new Text(pair.key)));
        spill.add(pairs);
      }
      made.add(spill);
    }
    return made;
  }

  /** Descriptors that this process has open. */
  static long descriptors() {
    try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
      return open.count();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Spills that this process has open. */
  static long openSpills() {
    try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
      return open.filter(
              fd -> {
                try {
                  return Files.readSymbolicLink(fd).toString().contains("_spill_");
                } catch (IOException e) {
                  return false;
                }
              })
          .count();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public void close() throws IOException {
    service.close();
  }

  private record OneDir(Path dir) implements AuxiliaryLocalPathHandler {
    @Override
    public org.apache.hadoop.fs.Path getLocalPathForRead(String path) throws IOException {
      Path file = dir.resolve(path);
      if (!Files.exists(file)) {
        throw new FileNotFoundException(file.toString());
      }
      return new org.apache.hadoop.fs.Path(file.toString());
    }

    @Override
    public org.apache.hadoop.fs.Path getLocalPathForWrite(String path) {
      return new org.apache.hadoop.fs.Path(dir.resolve(path).toString());
    }

    @Override
    public org.apache.hadoop.fs.Path getLocalPathForWrite(String path, long size) {
      return getLocalPathForWrite(path);
    }

    @Override
    public Iterable<org.apache.hadoop.fs.Path> getAllLocalPathsForRead(String path)
        throws IOException {
      return List.of(getLocalPathForRead(path));
    }
  }
}
