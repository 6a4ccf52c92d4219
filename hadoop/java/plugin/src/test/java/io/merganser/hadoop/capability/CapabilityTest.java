package io.merganser.hadoop.capability;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Optional;
import org.apache.hadoop.mapred.ShuffleHandler;
import org.junit.jupiter.api.Test;

class CapabilityTest {
  private static final ByteBuffer STOCK = ByteBuffer.wrap(new byte[] {0, 0, 0x34, (byte) 0xFA});

  @Test
  void bytesArePinned() {
    byte[] expected = "\0\0\0\0MGSHUFFL\0\1".getBytes(StandardCharsets.ISO_8859_1);
    System.arraycopy(STOCK.array(), 0, expected, 0, 4);
    assertEquals(ByteBuffer.wrap(expected), ByteBuffer.wrap(Capability.appendTo(STOCK)));
  }

  @Test
  void isFoundAfterHadoopsBytes() throws IOException {
    ByteBuffer metaData = ByteBuffer.wrap(Capability.appendTo(STOCK));
    assertEquals(Optional.of(1), Capability.versionIn(metaData));
    assertEquals(14, metaData.remaining());
    assertEquals(13562, ShuffleHandler.deserializeMetaData(metaData));
  }

  @Test
  void isNotFoundElsewhere() {
    assertEquals(Optional.empty(), Capability.versionIn(null));
    assertEquals(Optional.empty(), Capability.versionIn(STOCK));
    byte[] whole = Capability.appendTo(STOCK);
    for (int length = 0; length < whole.length; length++) {
      assertEquals(Optional.empty(), Capability.versionIn(ByteBuffer.wrap(whole, 0, length)));
    }
    for (int at = 4; at < 12; at++) {
      byte[] changed = Arrays.copyOf(whole, whole.length);
      changed[at] ^= 1;
      assertEquals(Optional.empty(), Capability.versionIn(ByteBuffer.wrap(changed)));
    }
  }
}
