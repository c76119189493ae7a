#include "tools/cli/command.h"
#include "tools/cli/option_table.h"

namespace hoist {

const std::vector<CommandRow>& command_rows() {
  static const std::vector<CommandRow> rows = {
      {"check", "check whether a model can be compiled, and list every obstacle",
       "  hoist check models/digits_residual.onnx", commands::check},
      {"compile", "compile a model to a bundle: a folder that any C program can load and run",
       "  hoist compile models/digits_residual.onnx -o digits.hoist\n"
       "  hoist compile model.onnx -o model.hoist --dim batch=8 --device 0\n"
       "  hoist compile model.onnx -o model.hoist --dim batch=1,8,32\n"
       "  hoist compile resnet.onnx --resize 256 --crop 224 --mean 0.485,0.456,0.406 --std "
       "0.229,0.224,0.225\n"
       "  hoist compile model.onnx --target native --tune=30\n"
       "  hoist compile models/digits_residual.onnx -o small.hoist --budget top1=0.5% "
       "--calibrate models/digits_residual_calibration.npz --record digits.json\n"
       "  hoist compile models/digits_residual.onnx -o smaller.hoist --budget top1=2% "
       "--record digits.json",
       commands::compile},
      {"run", "run a bundle once on inputs from files, and print or write its outputs",
       "  hoist run digits.hoist --input image=digit.npy --output-dir out", commands::run},
      {"evaluate",
       "run a bundle over a labelled data set and print the share of right answers, or over any data and print the "
       "difference to another bundle",
       "  hoist evaluate digits.hoist --data models/digits_residual_test.npz\n"
       "  hoist evaluate small.hoist --data images --against digits.hoist",
       commands::evaluate},
      {"test", "compile models, run them on recorded data, and compare the outputs",
       "  hoist test test_relu test_conv\n"
       "  hoist test model.onnx --data recorded --rtol 1e-3 --atol 1e-4",
       commands::test},
      {"verify", "check a bundle: its files, its self-check, and every kernel against the interpreter on given inputs",
       "  hoist verify digits.hoist --data models/digits_residual_test.npz", commands::verify},
      {"inspect", "print a layer at every stage: graph, high-level and low-level Lift, Halide's schedule, OpenCL",
       "  hoist inspect models/digits_residual.onnx conv1 --stage high,low\n"
       "  hoist inspect digits.hoist conv1 --stage opencl",
       commands::inspect},
      {"explain",
       "print the derivation of a layer's kernel: every step with its rule, its class and the term before "
       "and after; %A, %B, ... are parts that both sides share, and %x0, %x1, ... variables that are bound outside",
       "  hoist explain models/digits_residual.onnx conv1 --paths", commands::explain},
      {"rewrite", "run passes or a rule on a program, or a rule on a term, from text",
       "  hoist inspect models/digits_residual.onnx --stage graph --output digits.lift\n"
       "  hoist rewrite digits.lift --pass fold-batch-norm --pass fold-constants --pass inline-definitions\n"
       "  hoist rewrite term.lift --rule \"split-join(k = 4)\" --at root\n"
       "  hoist rewrite open.lift --dim batch=4 -o four.lift\n" +
           pass_list(),
       commands::rewrite},
      {"bisect",
       "find the first step from a model to its kernels that wrongly changes a value: computes both sides of every "
       "step on random and extreme inputs, then compares every kernel on the device",
       "  hoist bisect models/digits_residual.onnx", commands::bisect},
      {"reduce", "write the smallest part of a model in which hoist bisect finds an error",
       "  hoist reduce model.onnx -o small.onnx", commands::reduce},
      {"export",
       "write a model as ONNX for other engines: unchanged, under neural rules, or with the rules of a bundle",
       "  hoist export models/digits_residual.onnx -o plain.onnx\n"
       "  hoist export models/digits_residual.onnx --rule u8 --rule w8a8 "
       "--calibrate models/digits_residual_calibration.npz -o q.onnx\n"
       "  hoist export models/digits_residual.onnx --record digits.json -o chosen.onnx\n"
       "  hoist export small.hoist --model models/digits_residual.onnx -o small.onnx",
       commands::export_model},
      {"grad", "print the program that computes a loss and its gradients, or compile it to a bundle",
       "  hoist grad model.onnx --of loss --wrt weights\n"
       "  hoist grad models/digits_residual.onnx --loss cross-entropy --wrt weights -o gradient.hoist\n"
       "  hoist grad models/digits_residual.onnx --of \"sum(logits)\" --wrt inputs -o gradient.hoist",
       commands::grad},
      {"train",
       "train a model, or train it further: each step is one program, which is compiled like any other; the result is "
       "the model's file with other weights",
       "  hoist train models/digits_residual.onnx --data models/digits_residual_calibration.npz --initialise he "
       "--epochs 20 --validation 0.2 -o trained.onnx\n"
       "  hoist train model.onnx --data data.npz --optimiser momentum:momentum=0.95 --learning-rate 0.1 --schedule "
       "cosine --augment flip,crop=4 --checkpoint training\n"
       "  hoist train model.onnx --data data.npz --optimiser shampoo --batch auto --validation 0.1 --auto lr,clip\n"
       "  hoist train model.onnx --data few.npz --trunk features --freeze-trunk -o adapted.onnx\n"
       "  hoist train model.onnx --data images.npz --distill -o same.onnx",
       commands::train},
      {"bench", "time a bundle and each of its kernels on seeded inputs",
       "  hoist bench digits.hoist --json digits.json", commands::bench},
      {"tune", "measure the fastest form of each kernel on this device, for compile --tuning",
       "  hoist tune model.onnx -o model.tuning --time 300\n"
       "  hoist compile model.onnx --tuning model.tuning\n"
       "  hoist tune model.hoist --model model.onnx -o model.tuning\n"
       "  hoist tune model.onnx --list conv1",
       commands::tune},
      {"worker", "execute the jobs of a queue, for commands with --queue",
       "  hoist worker --queue nats://coordinator:4222\n"
       "  hoist worker --queue nats://coordinator:4222 --list",
       commands::worker},
      {"report", "write a page on accuracy against speed: the front, every layer, and the choice",
       "  hoist report models/digits_residual.onnx --calibrate "
       "models/digits_residual_calibration.npz -o report.html\n"
       "  hoist report models/digits_residual.onnx --record digits.json --budget top1=1% "
       "-o report.html\n"
       "  hoist report --compare cpu.json gpu.json -o comparison.html",
       commands::report},
      {"sensitivity", "measure the tolerance of each layer, and the effect of each rule on the output",
       "  hoist sensitivity models/digits_residual.onnx --calibrate models/digits_residual_calibration.npz",
       commands::sensitivity},
      {"devices", "list the OpenCL devices, or write the target description of one",
       "  hoist devices\n  hoist devices --profile --device 0 > here.profile", commands::devices},
      {"profiles", "list target descriptions of common devices, or write one, for compile --profile",
       "  hoist profiles\n  hoist profiles nvidia-a100 > mine.profile\n  hoist compile model.onnx --profile "
       "nvidia-a100",
       commands::profiles},
      {"language", "list the parts of terms: patterns, scalar functions, named compositions and types",
       "  hoist language", commands::language},
      {"rules",
       "list the rules, print one, or count the rules that bundles use; compile --rules reads rules of your own",
       "  hoist rules map-fusion\n  hoist rules --used digits.hoist", commands::rules},
      {"operators",
       "list the operators of the standard and hoist's own: the form of each definition, and the number of ONNX cases "
       "that pass",
       "  hoist operators\n  hoist operators Conv", commands::operators},
      {"help", "print the description and the options of a command, as its --help does", "  hoist help compile",
       commands::help},
      {"completion", "print a script that completes commands and options",
       "  source <(hoist completion bash)\n"
       "  hoist completion fish > ~/.config/fish/completions/hoist.fish",
       commands::completion},
      {"manual", "print the man page of hoist or of a command",
       "  hoist manual compile | man -l -\n"
       "  hoist manual --output-dir man1",
       commands::manual},
  };
  return rows;
}

}  // namespace hoist
