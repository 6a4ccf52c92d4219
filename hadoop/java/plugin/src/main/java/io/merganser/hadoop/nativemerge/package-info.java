/** The merge of segments by the native library, which is in the jar. */
package io.merganser.hadoop.nativemerge;
