package yarnfair.inrm;

import java.io.IOException;
import java.io.InputStream;
import java.util.Locale;
import java.util.Properties;

/**
 * How accumulated resources are counted: from system properties {@code yarnfair.inrm.NAME}, else from the file
 * {@code yarnfair-inrm.properties} on the class path, else the papers' values. Times are in seconds, {@code inf} is never.
 */
final class Settings {
  static final String PREFIX = "yarnfair.inrm.";
  static final String FILE = "yarnfair-inrm.properties";

  enum Measure { MEMORY, VCORES, DOMINANT }

  /** What is accumulated; the dominant one is the larger part of the cluster. */
  final Measure measure;
  /** eta of thesis eq. (5.7): the fraction counted of what exceeds a queue's share. */
  final double discount;
  /** L of eq. (5.12), ms; 0: one round for ever. */
  final long roundMs;
  /** LTYARN's T_wait, ms; negative: never. */
  final long waitMs;
  /** Pseudo accumulated resources for late arrivals (eqs. 5.10, 5.16). */
  final boolean pseudo;
  /** Q_0, the assumed execution time of running tasks, ms; negative: the plain integral. */
  final double quantumMs;
  /** Whether ended tasks tune it (LTYARN's Quantum Updater). */
  final boolean adaptive;
  /** How often usage is looked at besides each decision, ms; 0: not at all. */
  final long observeMs;

  Settings(Measure measure, double discount, long roundMs, long waitMs, long observeMs, boolean pseudo,
      double quantumMs, boolean adaptive) {
    this.measure = measure;
    this.discount = discount;
    this.roundMs = roundMs;
    this.waitMs = waitMs;
    this.observeMs = observeMs;
    this.pseudo = pseudo;
    this.quantumMs = quantumMs;
    this.adaptive = adaptive;
  }

  static Settings load() {
    Properties file = new Properties();
    try (InputStream stream = Settings.class.getClassLoader().getResourceAsStream(FILE)) {
      if (stream != null) {
        file.load(stream);
      }
    } catch (IOException error) {
      throw new IllegalArgumentException(FILE + " on the class path cannot be read: " + error.getMessage(), error);
    }
    String measure = text(file, "resource", "memory").toUpperCase(Locale.ROOT);
    Measure found;
    try {
      found = Measure.valueOf(measure);
    } catch (IllegalArgumentException error) {
      throw wrong("resource", measure, "memory, vcores or dominant");
    }
    double discount = number(file, "discount", "1");
    if (!(discount >= 0 && discount <= 1)) {
      throw wrong("discount", Double.toString(discount), "from 0 to 1");
    }
    double round = number(file, "round_s", "inf");
    double wait = number(file, "t_wait_s", "10");
    double observe = number(file, "observe_ms", "20");
    if (!(round > 0) || !(wait >= 0) || !(observe >= 0 && observe <= 3_600_000)) {
      throw wrong("round_s, t_wait_s, observe_ms", round + ", " + wait + ", " + observe, "not negative, a round above 0");
    }
    String quantum = text(file, "quantum_s", "none");
    double quantumS = quantum.equalsIgnoreCase("none") ? -1 : number(file, "quantum_s", "none");
    if (!(quantumS >= 0 && quantumS < 1e12) && quantumS != -1) {
      throw wrong("quantum_s", quantum, "seconds, at least 0, or none");
    }
    return new Settings(found, discount, round >= 1e12 ? 0 : Math.max(Math.round(round * 1000), 1),
        wait >= 1e12 ? -1 : Math.round(wait * 1000), Math.round(observe), flag(file, "pseudo", "false"), quantumS * 1000,
        flag(file, "adaptive_quantum", "false"));
  }

  private static boolean flag(Properties file, String name, String otherwise) {
    String text = text(file, name, otherwise);
    if (!text.equalsIgnoreCase("true") && !text.equalsIgnoreCase("false")) {
      throw wrong(name, text, "true or false");
    }
    return text.equalsIgnoreCase("true");
  }

  private static String text(Properties file, String name, String otherwise) {
    return System.getProperty(PREFIX + name, file.getProperty(name, otherwise)).trim();
  }

  private static double number(Properties file, String name, String otherwise) {
    String text = text(file, name, otherwise);
    if (text.equalsIgnoreCase("inf")) {
      return Double.POSITIVE_INFINITY;
    }
    try {
      return Double.parseDouble(text);
    } catch (NumberFormatException error) {
      throw wrong(name, text, "a number, or inf");
    }
  }

  private static IllegalArgumentException wrong(String name, String value, String wanted) {
    return new IllegalArgumentException(PREFIX + name + " is " + value + ": give " + wanted);
  }

  @Override
  public String toString() {
    return "resource=" + measure + " discount=" + discount + " round_ms=" + roundMs + " t_wait_ms=" + waitMs
        + " observe_ms=" + observeMs + " pseudo=" + pseudo + " quantum_ms=" + quantumMs + " adaptive_quantum="
        + adaptive;
  }
}
