package org.apache.hadoop.mapred;

import io.merganser.hadoop.service.Batch;
import io.merganser.hadoop.service.MergeService;
import io.merganser.hadoop.service.MergeStream;
import io.merganser.hadoop.service.OutputCatalog.Deferred;
import io.merganser.hadoop.service.OutputCatalog.Wanted;
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
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.mapreduce.task.reduce.ShuffleHeader;

/**
 * Handles one connection of a reducer.
 *
 * <p>This handler sees a request before the stock handler does:
 *
 * <pre>
 *   request --> all map outputs known as stock ones? --yes--------------------> stock handler
 *                 | no                                                               ^
 *                 v                                                                  |
 *               look up the others, on a thread of the service --none deferred-------+
 *                 | some deferred                                                    |
 *                 v                                                                  |
 *               ask to be admitted --granted-----------------------------------------+
 *                 +--turned away--> 429
 * </pre>
 *
 * <p>Until then nothing is answered. A fetch that is turned away gets the stock answer to too many
 * connections: status 429 and the milliseconds after which to come again. A stock reducer doesn't
 * count that as a failure. The stock handler checks a request, answers with the lengths in the
 * index, and calls {@link #sendMapOutput} for one map output after the other.
 *
 * <p>All methods run in the connection's event loop, except {@link #lookUp}.
 */
class ActiveShuffleChannelHandler extends ShuffleChannelHandler {
  private final ShuffleChannelHandlerContext context;
  private final MergeService service;

  /** The request that is looked up or waits to be admitted. */
  private FullHttpRequest pending;

  /** The map outputs of the request that is being answered, by map attempt. */
  private Map<String, Found> found = Map.of();

  /** The batch that was admitted, or asks to be. */
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
    if (pending != null || batch != null) {
      ShuffleHandler.LOG.warn(
          "Closing {}: it sent a request before its last one was answered", ctx.channel());
      ctx.close();
      return;
    }
    found = Map.of();
    Fetch fetch = fetch(ctx, request);
    if (fetch == null) {
      super.channelRead0(ctx, request);
      return;
    }
    if (fetch.wanted.stream().allMatch(service.outputs()::isKnownAsStock)) {
      found = new HashMap<>();
      fetch.wanted.forEach(wanted -> found.put(wanted.attempt(), Found.STOCK));
      super.channelRead0(ctx, request);
      return;
    }
    // A connection that was kept alive must not be closed as idle while it waits.
    ((ShuffleHandler.TimeoutHandler) ctx.pipeline().get(ShuffleHandler.TIMEOUT_HANDLER))
        .setEnabledTimeout(false);
    pending = request.retain();
    try {
      service.lookUp(
          () -> {
            Map<String, Found> looked = lookUp(fetch);
            if (!ctx.executor().isShuttingDown()) {
              ctx.executor().execute(() -> admit(ctx, fetch, looked));
            }
          });
    } catch (RejectedExecutionException e) {
      ShuffleHandler.LOG.debug("Closing {}: the service is stopping", ctx.channel(), e);
      ctx.close();
    }
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
    Found looked = found.get(mapId);
    Deferred output;
    try {
      if (looked == null) {
        throw new IOException(info.mapOutputFileName + " could not be read before, and can be now");
      }
      if (looked.failure != null) {
        throw looked.failure;
      }
      if (looked.deferred == null) {
        return super.sendMapOutput(channel, user, mapId, reduce, info);
      }
      output = looked.deferred;
      service.outputs().recheck(output);
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

  /**
   * A request of a reducer.
   *
   * @param reducer names the job and its reducer
   * @param wanted the map outputs that exist
   */
  private record Fetch(String reducer, List<Wanted> wanted) {}

  /**
   * The result of looking one map output up.
   *
   * @param deferred the segments, null unless the merge was deferred
   * @param failure the reason why it can't be served, or null
   */
  private record Found(Deferred deferred, IOException failure) {
    static final Found STOCK = new Found(null, null);
  }

  /** Reads a request; null if something is wrong with it, which the stock handler will report. */
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
    String job = jobs.get(0);
    String user = context.userRsrc.get(job);
    List<Wanted> wanted = new ArrayList<>();
    for (String maps : query.getOrDefault("map", List.of())) {
      for (String mapId : maps.split(",")) {
        try {
          MapOutputInfo info = getMapOutputInfo(mapId, reduce, job, user);
          wanted.add(
              new Wanted(
                  job,
                  user,
                  mapId,
                  new File(info.mapOutputFileName.toString()).toPath(),
                  reduce,
                  info.indexRecord.rawLength,
                  info.indexRecord.partLength));
        } catch (IOException | RuntimeException e) {
          // The stock handler finds the same and answers.
          ShuffleHandler.LOG.debug("{} can't be found", mapId, e);
        }
      }
    }
    return new Fetch(job + " " + reduce, wanted);
  }

  /** Looks the map outputs of a request up. Runs on a thread of the service. */
  private Map<String, Found> lookUp(Fetch fetch) {
    Map<String, Found> looked = new HashMap<>();
    for (Wanted wanted : fetch.wanted) {
      Found result;
      try {
        Optional<Deferred> deferred = service.outputs().find(wanted);
        result = deferred.isEmpty() ? Found.STOCK : new Found(deferred.get(), null);
      } catch (IOException e) {
        result = new Found(null, e);
      } catch (Throwable e) {
        // Errors too: a request without an answer would leave its connection open for ever.
        result = new Found(null, new IOException(wanted.fileOut() + ": " + e, e));
      }
      looked.put(wanted.attempt(), result);
    }
    return looked;
  }

  /** Asks to admit the pending request if it wants deferred map outputs; otherwise answers it. */
  private void admit(ChannelHandlerContext ctx, Fetch fetch, Map<String, Found> looked) {
    if (pending == null) {
      return;
    }
    found = looked;
    // A map output that can't be served needs no memory: it fails when its turn comes.
    List<Deferred> deferred =
        fetch.wanted.stream()
            .map(wanted -> looked.get(wanted.attempt()).deferred)
            .filter(Objects::nonNull)
            .toList();
    if (deferred.isEmpty()) {
      serve(ctx);
      return;
    }
    deferredLeft = deferred.size();
    batch =
        service.admit(
            fetch.reducer,
            deferred,
            () -> ctx.executor().execute(() -> serve(ctx)),
            () -> ctx.executor().execute(() -> turnAway(ctx)));
  }

  /**
   * Sends the header of a map output and not its bytes. So the reducer knows which of its map
   * outputs failed and blames no other. The connection is closed a moment later: where NodeManagers
   * recover, a reducer asks again as soon as the connection is closed.
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
