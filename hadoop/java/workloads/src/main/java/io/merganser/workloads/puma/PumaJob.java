package io.merganser.workloads.puma;

import java.io.IOException;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.util.Tool;

/** A job over lines of text that writes lines of text. Its input format may be set from outside. */
abstract class PumaJob extends Configured implements Tool {
  private final String name;

  PumaJob(String name) {
    this.name = name;
  }

  /** Sets the classes of the job. Its keys are Text. */
  abstract void configure(Job job);

  @Override
  public final int run(String[] args) throws Exception {
    if (args.length != 2) {
      System.err.println(name + " INPUT OUTPUT");
      return 2;
    }
    return job(new Path(args[0]), new Path(args[1])).waitForCompletion(true) ? 0 : 1;
  }

  private Job job(Path input, Path output) throws IOException {
    Job job = Job.getInstance(getConf(), name);
    job.setJarByClass(PumaJob.class);
    job.setMapOutputKeyClass(Text.class);
    job.setOutputKeyClass(Text.class);
    configure(job);
    FileInputFormat.addInputPath(job, input);
    FileOutputFormat.setOutputPath(job, output);
    return job;
  }
}
