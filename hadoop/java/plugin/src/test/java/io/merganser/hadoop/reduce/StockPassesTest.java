package io.merganser.hadoop.reduce;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class StockPassesTest {
  @Test
  void nothingIsMergedToAFileUpToTheFactor() {
    for (int files = 0; files <= 10; files++) {
      assertEquals(0, StockPasses.after(files, 10));
      assertEquals(0, StockPasses.whileFetchingAndAfter(files, 10));
    }
  }

  @Test
  void onePassBringsTheRestToTheFactor() {
    assertEquals(1, StockPasses.after(11, 10));
    assertEquals(1, StockPasses.after(19, 10));
    assertEquals(2, StockPasses.after(20, 10));
    assertEquals(2, StockPasses.after(28, 10));
    assertEquals(3, StockPasses.after(29, 10));
  }

  @Test
  void thePassesWhileFetchingStartAtTwiceTheFactorLessOne() {
    // 18 files wait for the end; the 19th starts a merge of 10, which leaves 10.
    assertEquals(1, StockPasses.whileFetchingAndAfter(18, 10));
    assertEquals(1, StockPasses.whileFetchingAndAfter(19, 10));
    assertEquals(2, StockPasses.whileFetchingAndAfter(20, 10));
    assertEquals(2, StockPasses.whileFetchingAndAfter(28, 10));
    assertEquals(11, StockPasses.whileFetchingAndAfter(109, 10));
  }

  @Test
  void aFactorThatMergesNothingHasNoPasses() {
    assertEquals(0, StockPasses.after(100, 1));
    assertEquals(0, StockPasses.whileFetchingAndAfter(100, 0));
  }
}
