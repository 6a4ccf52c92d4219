package io.merganser.hadoop.check;

import java.util.Locale;

/**
 * The result of one check.
 *
 * @param level how bad it is
 * @param what a word for the thing that was checked
 * @param sentence the result and, if something is wrong, what to do
 */
public record Finding(Level level, String what, String sentence) {
  /** How bad a finding is. */
  public enum Level {
    /** As it should be. */
    OK,
    /** Not wrong, but worth knowing. */
    NOTE,
    /** Works, but not as one would expect. */
    WARNING,
    /** Doesn't work. */
    ERROR;

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  static Finding ok(String what, String sentence) {
    return new Finding(Level.OK, what, sentence);
  }

  static Finding note(String what, String sentence) {
    return new Finding(Level.NOTE, what, sentence);
  }

  static Finding warning(String what, String sentence) {
    return new Finding(Level.WARNING, what, sentence);
  }

  static Finding error(String what, String sentence) {
    return new Finding(Level.ERROR, what, sentence);
  }

  @Override
  public String toString() {
    return String.format("%-8s %-12s %s", level, what, sentence);
  }
}
