package org.apache.hadoop.mapred;

import io.merganser.hadoop.service.Batch;
import io.merganser.hadoop.service.MergeService;
import io.merganser.hadoop.service.MergeStream;
import io.merganser.hadoop.service.OutputCatalog.Deferred;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelPromise;
import io.netty.handler.codec.http.DefaultHttpResponse;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http.QueryStringDecoder;
import io.netty.handler.stream.ChunkedWriteHandler;
import java.io.File;
import java.io.IOException;
import java.net.URL;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.mapreduce.task.reduce.ShuffleHeader;

/**
 * Handles one connection of a reducer.
 *
 * <p>A request is looked at before the stock handler gets it. If all map outputs that it names are
 * stock ones it goes on as it is. If some are deferred it first has to be let in, and meanwhile
 * nothing is answered: a fetch that is turned away gets the stock answer to too many connections,
 * 429 with the milliseconds after which to come again, which a stock reducer does not count as a
 * failure. What was let in goes through the stock handler too, which checks it, answers with the
 * lengths of the index and asks {@link #sendMapOutput} for one map output after the other.
 *
 * <p>All methods run in the connection's event loop.
 */
class ActiveShuffleChannelHandler extends ShuffleChannelHandler {
  private final ShuffleChannelHandlerContext context;
  private final MergeService service;

  /** The job of the request that is being answered; its token was verified. */
  private String job;

  /** The request that waits to be let in. */
  private FullHttpRequest pending;

  /** What was let in, or asks to be. */
  private Batch batch;

  /** Deferred map outputs of the request that were not sent yet. */
  private int deferredLeft;

  ActiveShuffleChannelHandler(ShuffleChannelHandlerContext context, MergeService service) {
    super(context);
    this.context = context;
    this.service = service;
  }

  @Override
  public void channelRead0(ChannelHandlerContext ctx, FullHttpRequest request) {
    if (batch != null) {
      ShuffleHandler.LOG.warn(
          "Closing {}: it sent a request before its last one was answered", ctx.channel());
      ctx.close();
      return;
    }
    Fetch fetch = fetch(ctx, request);
    if (fetch == null || fetch.deferred.isEmpty()) {
      super.channelRead0(ctx, request);
      return;
    }
    // A connection that was kept alive must not be closed as idle while it waits in line.
    ((ShuffleHandler.TimeoutHandler) ctx.pipeline().get(ShuffleHandler.TIMEOUT_HANDLER))
        .setEnabledTimeout(false);
    pending = request.retain();
    deferredLeft = fetch.deferred.size();
    batch =
        service.admit(
            fetch.reducer,
            fetch.deferred,
            () -> ctx.executor().execute(() -> serve(ctx)),
            () -> ctx.executor().execute(() -> turnAway(ctx)));
  }

  @Override
  public void channelInactive(ChannelHandlerContext ctx) throws Exception {
    FullHttpRequest request = takePending();
    if (request != null) {
      request.release();
    }
    endBatch();
    super.channelInactive(ctx);
  }

  @Override
  protected ChannelFuture sendMapOutput(
      Channel channel, String user, String mapId, int reduce, MapOutputInfo info)
      throws IOException {
    IndexRecord index = info.indexRecord;
    Deferred output;
    try {
      Optional<Deferred> found = find(user, mapId, reduce, info);
      if (found.isEmpty()) {
        return super.sendMapOutput(channel, user, mapId, reduce, info);
      }
      output = found.get();
      if (batch == null) {
        throw new IOException(info.mapOutputFileName + " could not be read before, and can be now");
      }
    } catch (IOException e) {
      return refuse(channel, header(mapId, reduce, index), e);
    }
    channel.write(header(mapId, reduce, index));
    ChunkedWriteHandler chunking = channel.pipeline().get(ChunkedWriteHandler.class);
    MergeStream stream =
        batch.open(
            output,
            channel.alloc(),
            () -> {
              if (channel.isActive()) {
                chunking.resumeTransfer();
              }
            });
    ChannelFuture sent = channel.writeAndFlush(stream);
    context.metrics.shuffleConnections.incr();
    context.metrics.shuffleOutputBytes.incr(index.partLength);
    return sent.addListener(
        future -> {
          if (--deferredLeft == 0) {
            endBatch();
          }
        });
  }

  /** What a request wants of deferred map outputs, and who it comes from. */
  private record Fetch(String reducer, List<Deferred> deferred) {}

  /** Looks at a request; null when something is wrong with it, which the stock handler will say. */
  private Fetch fetch(ChannelHandlerContext ctx, FullHttpRequest request) {
    if (!HttpMethod.GET.equals(request.method())) {
      return null;
    }
    Map<String, List<String>> query = new QueryStringDecoder(request.uri()).parameters();
    List<String> jobs = query.getOrDefault("job", List.of());
    List<String> reduces = query.getOrDefault("reduce", List.of());
    if (jobs.size() != 1 || reduces.size() != 1) {
      return null;
    }
    int reduce;
    try {
      reduce = Integer.parseInt(reduces.get(0));
      verifyRequest(
          jobs.get(0),
          ctx,
          request,
          new DefaultHttpResponse(HttpVersion.HTTP_1_1, HttpResponseStatus.OK),
          new URL("http", "", context.port, request.uri()));
    } catch (IOException | NumberFormatException e) {
      return null;
    }
    job = jobs.get(0);
    String user = context.userRsrc.get(job);
    List<Deferred> deferred = new ArrayList<>();
    for (String maps : query.getOrDefault("map", List.of())) {
      for (String mapId : maps.split(",")) {
        try {
          find(user, mapId, reduce, getMapOutputInfo(mapId, reduce, job, user))
              .ifPresent(deferred::add);
        } catch (IOException | RuntimeException e) {
          // It needs no memory: it fails when its turn comes, and those before it are served.
          ShuffleHandler.LOG.debug("{} cannot be served", mapId, e);
        }
      }
    }
    return new Fetch(job + " " + reduce, deferred);
  }

  private Optional<Deferred> find(String user, String mapId, int reduce, MapOutputInfo info)
      throws IOException {
    IndexRecord index = info.indexRecord;
    return service
        .outputs()
        .find(
            job,
            user,
            mapId,
            new File(info.mapOutputFileName.toString()).toPath(),
            reduce,
            index.rawLength,
            index.partLength);
  }

  /**
   * Sends a map output's header and not its bytes: so the reducer knows which of the many that it
   * asked for failed, and blames no other. The connection is closed a moment later, and not at
   * once, since a reducer of a cluster with recovery asks again as soon as it is.
   */
  private ChannelFuture refuse(Channel channel, ByteBuf header, IOException reason) {
    long wait = service.retryMillis();
    ShuffleHandler.LOG.error("Closing {}: {}", channel, reason.getMessage());
    service.countUnsent();
    endBatch();
    ChannelPromise refused = channel.newPromise();
    channel.writeAndFlush(header);
    channel.eventLoop().schedule(() -> refused.tryFailure(reason), wait, TimeUnit.MILLISECONDS);
    return refused;
  }

  private static ByteBuf header(String mapId, int reduce, IndexRecord index) throws IOException {
    return shuffleHeaderToBytes(
        new ShuffleHeader(mapId, index.partLength, index.rawLength, reduce));
  }

  private void serve(ChannelHandlerContext ctx) {
    FullHttpRequest request = takePending();
    if (request != null) {
      try {
        super.channelRead0(ctx, request);
      } finally {
        request.release();
      }
    }
  }

  private void turnAway(ChannelHandlerContext ctx) {
    FullHttpRequest request = takePending();
    if (request != null) {
      request.release();
      endBatch();
      sendError(
          ctx,
          "",
          ShuffleHandler.TOO_MANY_REQ_STATUS,
          Map.of(ShuffleHandler.RETRY_AFTER_HEADER, Long.toString(service.retryMillis())));
    }
  }

  private FullHttpRequest takePending() {
    FullHttpRequest request = pending;
    pending = null;
    return request;
  }

  private void endBatch() {
    if (batch != null) {
      batch.close();
      batch = null;
    }
  }
}
