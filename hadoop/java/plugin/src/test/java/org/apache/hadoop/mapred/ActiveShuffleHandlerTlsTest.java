package org.apache.hadoop.mapred;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.OutputStream;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.cert.X509Certificate;
import java.util.List;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509ExtendedTrustManager;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapred.ReduceClient.Output;
import org.apache.hadoop.mapred.ShuffleNode.Pair;
import org.apache.hadoop.mapreduce.MRConfig;
import org.apache.hadoop.security.ssl.SSLFactory;
import org.junit.jupiter.api.Test;

/** The service behind TLS. */
class ActiveShuffleHandlerTlsTest extends ShuffleServiceFixture {
  @Test
  void withTlsItServesTheSameBytes() throws Exception {
    Path keys = dir.resolve("keys.jks");
    Process keytool =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "keytool").toString(),
                "-genkeypair",
                "-alias",
                "node",
                "-keyalg",
                "RSA",
                "-dname",
                "CN=localhost",
                "-storetype",
                "JKS",
                "-storepass",
                "password",
                "-keypass",
                "password",
                "-keystore",
                keys.toString())
            .redirectErrorStream(true)
            .start();
    String said = new String(keytool.getInputStream().readAllBytes());
    assertEquals(0, keytool.waitFor(), said);
    Configuration server = new Configuration(false);
    server.set("ssl.server.keystore.location", keys.toString());
    server.set("ssl.server.keystore.password", "password");
    server.set("ssl.server.keystore.keypassword", "password");
    // Hadoop looks for its file in the class path.
    Path classes = Path.of(getClass().getProtectionDomain().getCodeSource().getLocation().toURI());
    Path settings = classes.resolve("ssl-server-of-a-test.xml");
    try (OutputStream out = Files.newOutputStream(settings)) {
      server.writeXml(out);
    }
    try (ShuffleNode node =
        new ShuffleNode(
            dir,
            conf -> {
              conf.setBoolean(MRConfig.SHUFFLE_SSL_ENABLED_KEY, true);
              conf.set(SSLFactory.SSL_SERVER_CONF_KEY, settings.getFileName().toString());
            })) {
      List<List<List<Pair>>> deferred = spills(5, 2, 500_000);
      List<List<List<Pair>>> stock = spills(5, 2, 500_000);
      node.writeDeferred(0, deferred);
      node.writeStock(1, stock);
      SSLContext context = SSLContext.getInstance("TLS");
      context.init(null, new TrustManager[] {new TrustsAll()}, null);
      Socket socket =
          context
              .getSocketFactory()
              .createSocket(ReduceClient.connect(node.port()), "localhost", node.port(), true);
      try (ReduceClient client = new ReduceClient(socket, node.port(), node.key())) {
        for (int p = 0; p < 2; p++) {
          List<Output> outputs = client.fetch(p, true, map(0), map(1), map(0)).outputs(3);
          assertArrayEquals(ShuffleNode.merged(deferred, p), outputs.get(0).bytes());
          assertArrayEquals(ShuffleNode.merged(stock, p), outputs.get(1).bytes());
          assertArrayEquals(ShuffleNode.merged(deferred, p), outputs.get(2).bytes());
        }
      }
      assertIdle(node);
    } finally {
      Files.delete(settings);
    }
  }

  /** A client that trusts every server; SSLContext needs it as an object. */
  private static final class TrustsAll extends X509ExtendedTrustManager {
    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type) {}

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type) {}

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type, Socket socket) {}

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type, Socket socket) {}

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type, SSLEngine engine) {}

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type, SSLEngine engine) {}

    @Override
    public X509Certificate[] getAcceptedIssuers() {
      return new X509Certificate[0];
    }
  }
}
