package io.merganser.hadoop.service;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class AdmissionTest {
  private static final long PATIENCE = TimeUnit.SECONDS.toNanos(1);

  private long now;
  private final List<String> events = new ArrayList<>();

  private Admission admission(long memory, int merges) {
    return new Admission(memory, merges, PATIENCE, () -> now);
  }

  /** One fetch and its fate. */
  private final class Fetch implements Admission.Holder {
    private final String name;
    private Admission.Ask ask;
    private Admission.Grant grant;
    private int grants;
    private int refusals;
    private boolean idle;

    Fetch(String name) {
      this.name = name;
    }

    Fetch ask(Admission admission, long bytes) {
      ask = admission.ask(name, bytes, this);
      return this;
    }

    Fetch askAgain(Admission admission, long bytes) {
      ask = admission.askAgain(bytes, this);
      return this;
    }

    @Override
    public void granted(Admission.Grant got) {
      grant = got;
      grants++;
      events.add("+" + name);
    }

    @Override
    public void turnedAway() {
      refusals++;
      events.add("-" + name);
    }

    @Override
    public void giveBackIfIdle(boolean othersWait) {
      if (idle && othersWait) {
        idle = false;
        events.add("~" + name);
        grant.release();
      }
    }
  }

  @Test
  void admitsWhatFitsAndTheNextWhenAGrantIsGivenBack() {
    Admission admission = admission(100, 2);
    Fetch a = new Fetch("a").ask(admission, 60);
    Fetch b = new Fetch("b").ask(admission, 40);
    new Fetch("c").ask(admission, 50);
    assertEquals(List.of("+a", "+b"), events);
    assertEquals(100, admission.usedBytes());
    b.grant.release();
    b.grant.release();
    assertEquals(60, admission.usedBytes());
    assertEquals(1, admission.waiting());
    a.grant.release();
    assertEquals(List.of("+a", "+b", "+c"), events);
    assertEquals(50, admission.usedBytes());
  }

  @Test
  void turnsAwayAfterItsPatienceButNotTheFirstInLine() {
    Admission admission = admission(100, 1);
    new Fetch("a").ask(admission, 1);
    new Fetch("b").ask(admission, 1);
    new Fetch("c").ask(admission, 1);
    now += PATIENCE - 1;
    admission.tick();
    assertEquals(List.of("+a"), events);
    now += 1;
    admission.tick();
    assertEquals(List.of("+a", "-c"), events);
    now += TimeUnit.SECONDS.toNanos(60);
    admission.tick();
    assertEquals(List.of("+a", "-c", "-b"), events);
  }

  @Test
  void aFetchThatWasTurnedAwayComesBeforeLaterOnes() {
    Admission admission = admission(100, 1);
    Fetch a = new Fetch("a").ask(admission, 1);
    Fetch b = new Fetch("b").ask(admission, 1);
    new Fetch("c").ask(admission, 1);
    now += PATIENCE;
    admission.tick();
    new Fetch("d").ask(admission, 1);
    new Fetch("c").ask(admission, 1);
    assertEquals(List.of("+a", "-c", "-d"), events, "the line has two places");
    a.grant.release();
    now += PATIENCE;
    admission.tick();
    b.grant.release();
    assertEquals(List.of("+a", "-c", "-d", "+b", "+c"), events);
  }

  @Test
  void noFetchOvertakesOneThatNeedsAllMemory() {
    Admission admission = admission(100, 4);
    Fetch a = new Fetch("a").ask(admission, 10);
    new Fetch("huge").ask(admission, 1000);
    new Fetch("b").ask(admission, 10);
    assertEquals(List.of("+a"), events);
    a.grant.release();
    assertEquals(List.of("+a", "+huge"), events);
    assertEquals(100, admission.usedBytes());
  }

  @Test
  void aFetchInTheMiddleOfAnAnswerComesFirstAndIsNeverTurnedAway() {
    Admission admission = admission(100, 1);
    Fetch a = new Fetch("a").ask(admission, 1);
    new Fetch("b").ask(admission, 1);
    new Fetch("m").askAgain(admission, 1);
    now += TimeUnit.HOURS.toNanos(1);
    admission.tick();
    a.grant.release();
    assertEquals(List.of("+a", "-b", "+m"), events);
  }

  @Test
  void anIdleHolderGivesItsGrantToAFetchThatWaits() {
    Admission admission = admission(100, 1);
    Fetch a = new Fetch("a").ask(admission, 1);
    a.idle = true;
    admission.tick();
    assertEquals(List.of("+a"), events);
    new Fetch("b").ask(admission, 1);
    assertEquals(List.of("+a", "~a", "+b"), events);
  }

  @Test
  void theLineIsShort() {
    Admission admission = admission(100, 2);
    for (int i = 0; i < 10; i++) {
      new Fetch("f" + i).ask(admission, 1);
    }
    assertEquals(List.of("+f0", "+f1", "-f6", "-f7", "-f8", "-f9"), events);
    admission.close();
    assertEquals(0, admission.waiting());
    new Fetch("late").ask(admission, 1);
    assertEquals("-late", events.get(events.size() - 1));
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5, 6, 7, 8})
  void staysWithinItsBoundsAndServesEveryFetch(int seed) {
    Random random = new Random(seed);
    int merges = 1 + random.nextInt(4);
    Admission admission = admission(100, merges);
    List<Fetch> open = new ArrayList<>();
    List<Fetch> all = new ArrayList<>();
    for (int step = 0; step < 3000; step++) {
      now += random.nextInt((int) PATIENCE / 10);
      switch (random.nextInt(4)) {
        case 0 -> {
          Fetch fetch = new Fetch("r" + random.nextInt(20));
          if (random.nextInt(5) == 0) {
            fetch.askAgain(admission, 1 + random.nextInt(150));
          } else {
            fetch.ask(admission, 1 + random.nextInt(150));
          }
          open.add(fetch);
          all.add(fetch);
        }
        case 1 -> admission.tick();
        default -> {
          if (!open.isEmpty()) {
            Fetch fetch = open.get(random.nextInt(open.size()));
            if (fetch.grant != null) {
              fetch.grant.release();
              open.remove(fetch);
            } else if (fetch.refusals > 0) {
              open.remove(fetch);
            }
          }
        }
      }
      assertTrue(admission.usedBytes() <= 100);
      assertTrue(admission.granted() <= merges);
    }
    while (!open.isEmpty()) {
      Fetch done = open.stream().filter(f -> f.grant != null || f.refusals > 0).findAny().get();
      if (done.grant != null) {
        done.grant.release();
      }
      open.remove(done);
    }
    for (Fetch fetch : all) {
      assertEquals(1, fetch.grants + fetch.refusals, fetch.name);
    }
    assertEquals(0, admission.usedBytes());
    assertEquals(0, admission.granted());
    assertEquals(0, admission.waiting());
  }
}
