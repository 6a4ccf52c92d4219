/**
 * Map tasks whose split is mapped on the node where its blocks are, by {@code merganser hadoop
 * serve --hdfs}.
 *
 * <pre>
 *   {@link io.merganser.hadoop.node.NodeInputFormat}   a reader asks once, at its first record
 *     NodeMap            the steps of one attempt; any refusal or failure leaves the map to the host
 *       NodeRules          may this job's maps run there, and as which program?   -> NodeProgram
 *       SplitBlocks        the blocks of the split, which must have replicas here
 *       LineTail           the end of the last line, which is behind the split
 *       NodeRequest, NodeConversation   the protocol
 *                          NodeErrors, NodeCounts: what it answers; NodeProbe: its state
 *     org.apache.hadoop.mapred.NodeMapOutput   takes the spills
 * </pre>
 */
package io.merganser.hadoop.node;
