package io.merganser.hadoop.service;

import io.merganser.hadoop.process.AbortedException;
import io.merganser.hadoop.process.ProcessConnection;
import io.netty.buffer.ByteBuf;
import java.io.IOException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * One merge in the merge process: a request and the answer to it.
 *
 * <pre>
 *   answer   { type u8  length u32  body } ...      until a frame "end" or "error"
 * </pre>
 */
final class ProcessMerge implements MergedBytes {
  private static final int FRAME_BYTES_MAX = 1 << 20;
  private static final int END_BYTES = 16;
  private static final int TYPE_DATA = 1;
  private static final int TYPE_END = 2;
  private static final int TYPE_ERROR = 3;

  /** The kinds of errors in an error frame. */
  private static final int ERROR_BUSY = 1;

  private static final int ERROR_DAMAGED = 2;
  private static final int ERROR_MISSING = 3;

  private final MergeProcess process;
  private final ProcessHealth.Permit permit;
  private final OutputCatalog.Deferred output;
  private final long skip;
  private final long memoryBytes;

  private volatile ProcessConnection connection;
  private volatile boolean aborted;

  /** Bytes of the data frame that have not been read yet. */
  private int left;

  private boolean ended;

  ProcessMerge(
      MergeProcess process,
      ProcessHealth.Permit permit,
      OutputCatalog.Deferred output,
      long skip,
      long memoryBytes) {
    this.process = process;
    this.permit = permit;
    this.output = output;
    this.skip = skip;
    this.memoryBytes = memoryBytes;
  }

  @Override
  public void read(ByteBuf into) throws IOException {
    try {
      if (connection == null) {
        begin();
      }
      while (left == 0 && !ended) {
        connection.readHead();
        frame();
      }
      if (ended) {
        throw new IOException("it ended the merge of " + output.name() + " before its length");
      }
      int count = Math.min(left, into.maxWritableBytes());
      into.ensureWritable(count);
      int read = connection.readSome(into.nioBuffer(into.writerIndex(), count));
      into.writerIndex(into.writerIndex() + read);
      left -= read;
    } catch (IOException e) {
      throw noted(e);
    }
  }

  @Override
  public void finish() throws IOException {
    try {
      while (left == 0 && !ended) {
        connection.readHead();
        frame();
      }
      if (left > 0) {
        throw new IOException("it sent more of " + output.name() + " than its length");
      }
    } catch (IOException e) {
      throw noted(e);
    }
  }

  @Override
  public void abort() {
    aborted = true;
    ProcessConnection waiting = connection;
    if (waiting != null) {
      waiting.abort();
    }
  }

  @Override
  public void close() {
    permit.end();
    if (connection == null) {
      return;
    }
    if (ended && !aborted) {
      process.giveBack(connection);
    } else {
      connection.close();
    }
  }

  /** Sends the request and reads the first frame. */
  private void begin() throws IOException {
    ByteBuffer request = MergeRequest.of(output, skip, memoryBytes);
    ProcessConnection old = process.pooled();
    if (old == null || !ask(old, request.duplicate())) {
      // The process of an idle connection may have ended since; a new connection shows it.
      use(process.connect());
      connection.ask(request);
    }
    frame();
    process.answered();
    permit.end();
  }

  private boolean ask(ProcessConnection old, ByteBuffer request) throws IOException {
    use(old);
    try {
      old.ask(request);
      return true;
    } catch (AbortedException | SocketTimeoutException e) {
      throw e;
    } catch (IOException e) {
      old.close();
      return false;
    }
  }

  private void use(ProcessConnection taken) throws IOException {
    connection = taken;
    if (aborted) {
      throw new AbortedException();
    }
  }

  /** Notes what a failure says about the process. */
  private IOException noted(IOException e) {
    if (e instanceof SpillUnreadableException || e instanceof DeclinedException) {
      if (ended) {
        process.answered();
      }
    } else if (!(e instanceof AbortedException)) {
      process.failed(e);
    }
    permit.end();
    return e;
  }

  /** Reads the frame whose head was read; of a data frame, only the head. */
  private void frame() throws IOException {
    int type = connection.head().get();
    int length = connection.head().getInt();
    if (length < 0 || length > FRAME_BYTES_MAX) {
      throw new IOException("it sent a frame of " + Integer.toUnsignedLong(length) + " bytes");
    }
    switch (type) {
      case TYPE_DATA -> left = length;
      case TYPE_END -> {
        if (length != END_BYTES) {
          throw new IOException("it sent an end of " + length + " bytes");
        }
        connection.readFully(ByteBuffer.allocate(END_BYTES));
        ended = true;
      }
      case TYPE_ERROR -> error(length);
      default -> throw new IOException("it sent a frame of the unknown type " + type);
    }
  }

  private void error(int length) throws IOException {
    ByteBuffer body = ByteBuffer.allocate(length);
    connection.readFully(body);
    body.flip();
    ended = true;
    int kind = length < 2 ? 0 : Short.toUnsignedInt(body.getShort());
    String sentence = StandardCharsets.UTF_8.decode(body).toString();
    switch (kind) {
      case ERROR_DAMAGED -> throw new SpillUnreadableException(sentence);
      case ERROR_MISSING -> {
        for (var segment : output.segments()) {
          if (!segment.file().toFile().exists()) {
            throw new SpillUnreadableException(sentence);
          }
        }
        throw new DeclinedException("does not see spills that exist: " + sentence);
      }
      case ERROR_BUSY -> throw new DeclinedException("is busy: " + sentence);
      default -> throw new DeclinedException("refused: " + sentence);
    }
  }
}
