// Option parsing of the programs: defaults, what is refused and how, the help texts.
#include "apps/options.h"

#include "apps/golden.h"
#include "support/catch.h"
#include "support/throws.h"

namespace lockstep::apps {

using test::check_golden;
using test::contains;
using test::message_of;

namespace {

template <class T>
T parsed(const Arguments& arguments) {
  const MnistCommand command = parse_mnist(arguments);
  REQUIRE(std::holds_alternative<T>(command));
  return std::get<T>(command);
}

std::string refusal(const Arguments& arguments) {
  return message_of<UsageError>([&] { static_cast<void>(parse_mnist(arguments)); });
}

std::string printed(const Arguments& arguments) {
  return parsed<PrintText>(arguments).text;
}

}  // namespace

TEST_CASE("options: no arguments are the article's experiment", "[apps]") {
  const TrainOptions options = parsed<TrainOptions>({});
  CHECK(options.data.dataset == "mnist");
  CHECK_FALSE(options.data.limit_train.has_value());
  CHECK(options.devices == "auto");
  CHECK(options.epochs == 2);
  CHECK(options.batch_size == 128);
  CHECK(options.batch_per_replica == 0);
  CHECK(options.last_batch == LastBatch::keep);
  CHECK(options.reduce == Reduce::fast);
  CHECK(options.shards == 0);
  CHECK(options.lr == 0.01);
  CHECK(options.lr_decay == 0.7);
  CHECK(options.lr_min == 1e-5);
  CHECK(options.l2 == 0);
  CHECK(options.model == "article");
  CHECK(options.optimizer == "adam");
  CHECK_FALSE(options.epsilon_place.has_value());
  CHECK(options.out.empty());
}

TEST_CASE("options: train with and without its name, every option", "[apps]") {
  for (const bool named : {false, true}) {
    Arguments arguments{"--dataset",
                        "synthetic",
                        "--limit-train",
                        "1000",
                        "--limit-validation",
                        "200",
                        "--limit-test",
                        "0",
                        "--devices",
                        "cpu:4",
                        "--epochs",
                        "3",
                        "--batch-per-replica",
                        "32",
                        "--last-batch",
                        "drop",
                        "--shards",
                        "16",
                        "--reduce",
                        "invariant",
                        "--lr",
                        "0.5",
                        "--lr-decay",
                        "0.9",
                        "--lr-min",
                        "0.001",
                        "--l2",
                        "1e-4",
                        "--seed",
                        "18446744073709551615",
                        "--model",
                        "mlp",
                        "--optimizer",
                        "sgd",
                        "--momentum",
                        "0.9",
                        "--clip-norm",
                        "2",
                        "--bucket-bytes",
                        "4096",
                        "--early-stopping",
                        "2",
                        "--restore-best",
                        "--out",
                        "here",
                        "--init-from",
                        "w",
                        "--quiet",
                        "--json"};
    if (named) arguments.insert(arguments.begin(), "train");
    const TrainOptions options = parsed<TrainOptions>(arguments);
    CHECK(options.data.dataset == "synthetic");
    CHECK(options.data.limit_train == 1000);
    CHECK(options.data.limit_validation == 200);
    CHECK(options.data.limit_test == 0);
    CHECK(options.devices == "cpu:4");
    CHECK(options.epochs == 3);
    CHECK(options.batch_per_replica == 32);
    CHECK(options.last_batch == LastBatch::drop);
    CHECK(options.shards == 16);
    CHECK(options.reduce == Reduce::invariant);
    CHECK(options.lr == 0.5);
    CHECK(options.lr_decay == 0.9);
    CHECK(options.lr_min == 0.001);
    CHECK(options.l2 == 1e-4);
    CHECK(options.seed == 18446744073709551615U);
    CHECK(options.model == "mlp");
    CHECK(options.optimizer == "sgd");
    CHECK(options.momentum == 0.9);
    CHECK(options.clip_norm == 2);
    CHECK(options.bucket_bytes == 4096);
    CHECK(options.early_stopping == 2);
    CHECK(options.restore_best);
    CHECK(options.out == "here");
    CHECK(options.init_from == "w");
    CHECK(options.output.quiet);
    CHECK(options.output.json);
  }
}

TEST_CASE("options: Adam's epsilon goes where it is asked to", "[apps]") {
  CHECK(parsed<TrainOptions>({"--epsilon-place", "pytorch"}).epsilon_place ==
        EpsilonPlace::outside);
  CHECK(parsed<TrainOptions>({"--epsilon-place", "tensorflow"}).epsilon_place ==
        EpsilonPlace::inside);
}

TEST_CASE("options: the other commands", "[apps]") {
  CHECK(parsed<EvalOptions>({"eval"}).weights == "runs/latest");
  CHECK(parsed<EvalOptions>({"eval", "--split", "validation"}).split == "validation");
  CHECK(parsed<PredictOptions>({"predict", "a.png", "b.png"}).images ==
        std::vector<std::string>{"a.png", "b.png"});
  CHECK(parsed<ParityOptions>({"parity"}).replicas == std::vector<int>{1, 2, 4, 8});
  CHECK(parsed<ParityOptions>({"parity", "--replicas", "1,2"}).replicas == std::vector<int>{1, 2});
  const auto bench = parse_bench({"scaling", "--replicas", "2,3", "--json", "-"});
  CHECK(std::get<ScalingOptions>(bench).replicas == std::vector<int>{2, 3});
  CHECK(std::get<ScalingOptions>(bench).json == "-");
}

TEST_CASE("options: bad values are refused with what is legal", "[apps]") {
  CHECK(
      contains(refusal({"--epochs", "0"}), "--epochs: '0'; want a whole number from 1 to 1000000"));
  CHECK(contains(refusal({"--epochs", "2.5"}), "'2.5'; want a whole number"));
  CHECK(contains(refusal({"--batch-size", "-1"}), "'-1'; want a whole number from 1 to 16777216"));
  CHECK(contains(refusal({"--batch-size", "99999999999999999999"}), "want a whole number"));
  CHECK(contains(refusal({"--lr", "nan"}), "'nan'; want a number above 0"));
  CHECK(contains(refusal({"--lr", "0"}), "'0'; want a number above 0"));
  CHECK(contains(refusal({"--seed", "-3"}),
                 "'-3'; want a whole number from 0 to 18446744073709551615"));
  CHECK(contains(refusal({"--model", "resnet"}),
                 "'resnet'; want one of article, lenet5, wide_cnn, mlp"));
  CHECK(contains(refusal({"--dataset", "cifar"}), "want one of mnist, fashion-mnist, synthetic"));
  CHECK(contains(refusal({"--last-batch", "pad"}), "want one of keep, drop"));
  CHECK(contains(refusal({"--reduce", "slow"}), "want one of fast, invariant"));
  CHECK(contains(refusal({"--optimizer", "lion"}), "want one of adam, adamw, sgd"));
  CHECK(contains(refusal({"--precision", "fp8"}), "want one of fp32, tf32"));
  CHECK(contains(refusal({"--bucket-bytes", "8"}), "from 64 to"));
  CHECK(contains(refusal({"--epochs"}), "--epochs"));
  CHECK(contains(refusal({"--no-such-option"}), "--no-such-option"));
  CHECK(contains(refusal({"fly"}),
                 "no command 'fly'; want train, eval, predict, parity, replay or doctor"));
  CHECK(contains(refusal({"train", "extra"}), "extra"));
  CHECK(contains(refusal({"predict"}), "no picture given"));
  CHECK(contains(refusal({"parity", "--replicas", "1,1"}), "want different whole numbers"));
  CHECK(contains(refusal({"parity", "--replicas", "1,"}), "want different whole numbers"));
  CHECK(contains(refusal({"parity", "--steps", "49"}), "from 50"));
}

TEST_CASE("options: values that cannot work together are refused", "[apps]") {
  CHECK(contains(refusal({"--batch-size", "64", "--batch-per-replica", "64"}), "give one of them"));
  CHECK(contains(refusal({"--lr", "1e-6"}), "below --lr-min"));
  CHECK(contains(refusal({"--momentum", "0.9"}), "--optimizer sgd"));
  CHECK(contains(refusal({"--momentum", "1", "--optimizer", "sgd"}), "below 1"));
  CHECK(
      contains(refusal({"--optimizer", "sgd", "--epsilon-place", "pytorch"}), "--optimizer adam"));
  CHECK(contains(refusal({"--restore-best", "--limit-validation", "0"}), "need validation"));
}

TEST_CASE("options: help texts", "[apps]") {
  check_golden("train_help.txt", printed({"--help"}));
  CHECK(printed({"train", "-h"}) == printed({"--help"}));
  CHECK(printed({"--epochs", "nonsense", "--help"}) == printed({"--help"}));
  check_golden("eval_help.txt", printed({"eval", "--help"}));
  check_golden("predict_help.txt", printed({"predict", "--help"}));
  check_golden("parity_help.txt", printed({"parity", "--help"}));
  check_golden("replay_help.txt", printed({"replay", "--help"}));
  check_golden("doctor_help.txt", printed({"doctor", "--help"}));
  check_golden("bench_help.txt", std::get<PrintText>(parse_bench({"--help"})).text);
  check_golden("scaling_help.txt", std::get<PrintText>(parse_bench({"scaling", "--help"})).text);
}

TEST_CASE("options: the version names instruction sets and backends", "[apps]") {
  const std::string text = printed({"--version"});
  CHECK(contains(text, "mnist_multi_gpu (lockstep) 0."));
  CHECK(contains(text, "CPU instruction sets: baseline"));
  CHECK(contains(text, "in use: "));
  CHECK(contains(text, "CUDA: "));
}

}  // namespace lockstep::apps
