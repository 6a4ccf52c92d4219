package io.merganser.hadoop.cluster;

import io.merganser.hadoop.node.NodeProbe;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/** Makes a fault as soon as a map runs on a node. */
final class AtFirstMap implements AutoCloseable {
  private static final int ANSWER_MILLIS = 10_000;

  /** The fault. */
  @FunctionalInterface
  interface Fault {
    void happen() throws Exception;
  }

  private final AtomicBoolean ended = new AtomicBoolean();
  private final FutureTask<Boolean> watcher;

  /** Begins to watch the node. */
  AtFirstMap(MergeProcess node, Fault fault) {
    watcher = new FutureTask<>(() -> watch(node, fault));
    new Thread(watcher, "maker of the fault").start();
  }

  private boolean watch(MergeProcess node, Fault fault) throws Exception {
    while (!ended.get()) {
      if (NodeProbe.ask(node.socket(), ANSWER_MILLIS).maps() > 0) {
        fault.happen();
        return true;
      }
      Thread.sleep(1);
    }
    return false;
  }

  /** Ends the watch; whether the fault was made. */
  boolean happened() throws Exception {
    ended.set(true);
    return watcher.get(120, TimeUnit.SECONDS);
  }

  @Override
  public void close() {
    ended.set(true);
  }
}
