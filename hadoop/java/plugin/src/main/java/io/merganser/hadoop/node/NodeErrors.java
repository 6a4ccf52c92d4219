package io.merganser.hadoop.node;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** The meaning of the node's error frames. */
final class NodeErrors {
  /** The largest kind of an error. */
  private static final int KIND_MAX = 106;

  /** The reasons that a node can give. */
  static final Set<HostReason> REASONS =
      IntStream.rangeClosed(1, KIND_MAX)
          .mapToObj(NodeErrors::reason)
          .collect(Collectors.toCollection(() -> EnumSet.noneOf(HostReason.class)));

  private NodeErrors() {}

  /** The error in the body of a frame: its kind, u16, and a sentence. */
  static OnHostException of(ByteBuffer body, Path socket) {
    int kind = body.remaining() < Short.BYTES ? 0 : Short.toUnsignedInt(body.getShort());
    String sentence = StandardCharsets.UTF_8.decode(body).toString();
    return new OnHostException(
        reason(kind), "the node at " + socket + " (error " + kind + "): " + sentence);
  }

  /** The reason for which a map runs on the host after an error of this kind. */
  static HostReason reason(int kind) {
    return switch (kind) {
      case 1 -> HostReason.BUSY;
      case 3, 4, 5 -> HostReason.PROGRAM;
      case 6 -> HostReason.NO_LOCAL_REPLICA;
      case 7 -> HostReason.GENERATION;
      case 8 -> HostReason.LENGTH;
      case 9 -> HostReason.DELIMITER;
      case 10 -> HostReason.MEMORY;
      case 11 -> HostReason.CHECKSUM_KIND;
      case 12 -> HostReason.PROGRAM_ABSENT;
      case 13 -> HostReason.NO_UPLOADS;
      case 14 -> HostReason.PROGRAM;
      case 101 -> HostReason.DAMAGED_BLOCK;
      case 102 -> HostReason.READ_FAILED;
      case 103 -> HostReason.LONG_RECORD;
      case 105 -> HostReason.PROGRAM_FAILED;
      case 106 -> HostReason.MISTAKE;
      // Kinds 2 (the request is malformed) and 104 (the tail is too short) are mistakes of a task,
      // and other kinds are those of a later version.
      default -> HostReason.PROTOCOL;
    };
  }
}
