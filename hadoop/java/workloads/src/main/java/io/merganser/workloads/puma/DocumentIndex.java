package io.merganser.workloads.puma;

import java.io.IOException;
import java.util.LinkedHashSet;
import java.util.Optional;
import java.util.TreeSet;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.Reducer;

/**
 * The inverted index: for each word, the documents that have it: {@code WORD tab NAME tab NAME}.
 */
public final class DocumentIndex extends PumaJob {
  /** Makes the job. */
  public DocumentIndex() {
    super("puma-inverted-index");
  }

  @Override
  void configure(Job job) {
    job.setMapperClass(WordMapper.class);
    job.setCombinerClass(Distinct.class);
    job.setReducerClass(NamesReducer.class);
    job.setOutputValueClass(Text.class);
  }

  /** Writes each distinct word of a line, and the document's name. */
  public static final class WordMapper extends Mapper<LongWritable, Text, Text, Text> {
    private final Text word = new Text();
    private final Text name = new Text();

    @Override
    protected void map(LongWritable offset, Text line, Context context)
        throws IOException, InterruptedException {
      Optional<Document> document = Document.of(line.toString());
      if (document.isEmpty()) {
        return;
      }
      name.set(document.get().name());
      for (String each : new LinkedHashSet<>(document.get().words())) {
        word.set(each);
        context.write(word, name);
      }
    }
  }

  /** Lists the documents of a word, each once and in order. */
  static final class NamesReducer extends Reducer<Text, Text, Text, Text> {
    @Override
    protected void reduce(Text word, Iterable<Text> names, Context context)
        throws IOException, InterruptedException {
      TreeSet<Text> distinct = new TreeSet<>();
      for (Text name : names) {
        distinct.add(new Text(name));
      }
      context.write(
          word, new Text(String.join("\t", distinct.stream().map(Text::toString).toList())));
    }
  }
}
