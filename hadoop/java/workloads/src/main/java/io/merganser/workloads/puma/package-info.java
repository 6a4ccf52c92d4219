/**
 * The seven jobs of the PUMA benchmarks that the paper on in-storage computing calls similar to
 * word count. They are written from their definitions, in plain Java; the node has a program for
 * each of their mappers. A line is the text that Hadoop decodes, and words are the tokens of {@link
 * java.util.StringTokenizer}.
 */
package io.merganser.workloads.puma;
