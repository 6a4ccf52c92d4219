/** Jobs that Hadoop's examples lack, for the benchmarks and the tests on clusters. */
package io.merganser.workloads;
