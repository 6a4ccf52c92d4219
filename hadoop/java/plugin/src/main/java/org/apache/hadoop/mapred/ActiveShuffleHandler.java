package org.apache.hadoop.mapred;

import io.merganser.hadoop.capability.Capability;
import io.merganser.hadoop.config.Keys;
import io.merganser.hadoop.node.NodeMetrics;
import io.merganser.hadoop.service.MergeMetrics;
import io.merganser.hadoop.service.MergeService;
import io.netty.channel.Channel;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.channel.group.ChannelGroup;
import io.netty.channel.group.DefaultChannelGroup;
import io.netty.util.concurrent.GlobalEventExecutor;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.yarn.server.api.ApplicationTerminationContext;

/**
 * Hadoop's shuffle service, which also serves map outputs whose merge was deferred: it merges the
 * spills of a partition while it sends them. It is configured as {@code
 * yarn.nodemanager.aux-services.mapreduce_shuffle.class}, under the name of the stock service.
 *
 * <p>The stock class still does ports, tokens, the recovery database, TLS and the stock metrics.
 * Two things change: the handler of each connection, and the metadata. A few bytes after the port
 * announce to map tasks on this node that they may defer (see {@link Capability}). Readers of the
 * port alone don't see them.
 *
 * <p>The stock class makes the handlers of its connections itself. They add each new connection to
 * a group of channels before anything is read from it. The group that they get here replaces the
 * stock handler by {@link ActiveShuffleChannelHandler} at that moment. So the stock handler never
 * gets a request first, not even while the service starts. When the service starts, it checks that
 * this works with the installed version of Hadoop, and fails otherwise: a manifest that is sent as
 * a map output would only cause failed fetches.
 */
public class ActiveShuffleHandler extends ShuffleHandler {
  /** The name of the stock handler in the pipeline of a connection. */
  private static final String STOCK_NAME = "shuffle";

  private MergeMetrics mergeMetrics;
  private NodeMetrics nodeMetrics;
  private MergeService service;

  /** The NodeManager makes the service by the name of this class. */
  public ActiveShuffleHandler() {
    super();
  }

  @Override
  protected void serviceInit(Configuration conf) throws Exception {
    super.serviceInit(conf);
    mergeMetrics = ms.register(MergeMetrics.NAME, null, new MergeMetrics());
    String node = conf.getTrimmed(Keys.NODE_SOCKET, "");
    if (!node.isEmpty() && !UserGroupInformation.isSecurityEnabled()) {
      nodeMetrics =
          ms.register(NodeMetrics.NAME, null, new NodeMetrics(Path.of(node), System::nanoTime));
    }
  }

  @Override
  protected ShuffleChannelHandlerContext createHandlerContext() {
    service = new MergeService(getConfig(), mergeMetrics);
    ShuffleChannelHandlerContext stock = super.createHandlerContext();
    Connections connections = new Connections();
    ShuffleChannelHandlerContext context =
        new ShuffleChannelHandlerContext(
            stock.conf,
            stock.userRsrc,
            stock.secretManager,
            stock.pathCache,
            stock.indexCache,
            stock.metrics,
            connections);
    connections.context = context;
    requireReplacement(context);
    return context;
  }

  @Override
  protected void serviceStop() throws Exception {
    try {
      super.serviceStop();
    } finally {
      if (mergeMetrics != null) {
        ms.unregisterSource(MergeMetrics.NAME);
      }
      if (nodeMetrics != null) {
        ms.unregisterSource(NodeMetrics.NAME);
      }
      if (service != null) {
        service.close();
      }
    }
  }

  @Override
  public synchronized ByteBuffer getMetaData() {
    ByteBuffer stock = super.getMetaData();
    return stock == null ? null : ByteBuffer.wrap(Capability.appendTo(stock));
  }

  @Override
  public void stopApplication(ApplicationTerminationContext context) {
    super.stopApplication(context);
    JobID job =
        new JobID(
            Long.toString(context.getApplicationId().getClusterTimestamp()),
            context.getApplicationId().getId());
    if (service != null) {
      service.outputs().forget(job.toString());
    }
  }

  /** The merges of this service. */
  MergeService merges() {
    return service;
  }

  /** Makes a connection to nothing active and checks which handler it has then. */
  private static void requireReplacement(ShuffleChannelHandlerContext context) {
    EmbeddedChannel probe = new EmbeddedChannel();
    try {
      probe.pipeline().addLast(STOCK_NAME, new ShuffleChannelHandler(context));
      probe.pipeline().fireChannelActive();
      if (!(probe.pipeline().get(STOCK_NAME) instanceof ActiveShuffleChannelHandler)) {
        throw new IllegalStateException(
            "This Hadoop's ShuffleHandler does not announce its connections as that of 3.4.2 does:"
                + " configure the stock class, or a plugin made for this version");
      }
    } finally {
      probe.close();
    }
  }

  /** The group of channels; each connection is added to it before its first request. */
  private final class Connections extends DefaultChannelGroup {
    private ShuffleChannelHandlerContext context;

    Connections() {
      super(GlobalEventExecutor.INSTANCE);
    }

    @Override
    public boolean add(Channel channel) {
      if (channel.pipeline().get(STOCK_NAME) instanceof ShuffleChannelHandler) {
        channel
            .pipeline()
            .replace(STOCK_NAME, STOCK_NAME, new ActiveShuffleChannelHandler(context, service));
      }
      return allChannels().add(channel);
    }

    @Override
    public int size() {
      return allChannels().size();
    }

    private ChannelGroup allChannels() {
      return allChannels;
    }
  }
}
