package org.apache.hadoop.mapred;

import io.merganser.hadoop.capability.Capability;
import io.merganser.hadoop.service.MergeMetrics;
import io.merganser.hadoop.service.MergeService;
import io.netty.channel.Channel;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.channel.group.ChannelGroup;
import io.netty.channel.group.DefaultChannelGroup;
import io.netty.util.concurrent.GlobalEventExecutor;
import java.nio.ByteBuffer;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.server.api.ApplicationTerminationContext;

/**
 * Hadoop's shuffle service, which also serves map outputs whose merge was deferred: it merges a
 * partition's spills while it sends them. Configured as {@code
 * yarn.nodemanager.aux-services.mapreduce_shuffle.class}, under the stock service's name.
 *
 * <p>Ports, tokens, the recovery database, TLS and the stock metrics stay the stock class's. What
 * changes is the handler of each connection, and the metadata: a few bytes behind the port tell map
 * tasks on this node that they may defer (see {@link Capability}); readers of the port alone don't
 * see them.
 *
 * <p>The stock class makes its connections' handlers itself. They add each connection to a group of
 * channels as soon as it is there, before anything is read from it. The group that they are given
 * here puts {@link ActiveShuffleChannelHandler} in the stock handler's place at that moment, so no
 * request ever meets the stock handler, not even one that comes while the service starts. A start
 * makes sure that this works with the Hadoop at hand and fails otherwise: a manifest sent as if it
 * were a map output would only cause failed fetches.
 */
public class ActiveShuffleHandler extends ShuffleHandler {
  /** The stock handler's name in a connection's pipeline. */
  private static final String STOCK_NAME = "shuffle";

  private MergeMetrics mergeMetrics;
  private MergeService service;

  /** Made by the NodeManager, by this class's name. */
  public ActiveShuffleHandler() {
    super();
  }

  @Override
  protected void serviceInit(Configuration conf) throws Exception {
    super.serviceInit(conf);
    mergeMetrics = ms.register(MergeMetrics.NAME, null, new MergeMetrics());
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

  /** The service's group of channels, which sees each connection before its first request. */
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
