/** The merge of segments by the native library that the jar brings along. */
package io.merganser.hadoop.nativemerge;
