// mnist_multi_gpu: trains, evaluates and uses networks on MNIST and data like it.
#include <iostream>

#include "apps/mnist_multi_gpu/commands.h"
#include "apps/program.h"

namespace {

using namespace lockstep::apps;

struct Runner {
  ExitCode operator()(const PrintText& print) const {
    std::cout << print.text;
    return ExitCode::ok;
  }
  ExitCode operator()(const TrainOptions& options) const { return run_train(options); }
  ExitCode operator()(const EvalOptions& options) const { return run_eval(options); }
  ExitCode operator()(const PredictOptions& options) const { return run_predict(options); }
  ExitCode operator()(const DoctorOptions& options) const { return run_doctor(options); }
  ExitCode operator()(const ParityOptions& options) const { return run_parity(options); }
  ExitCode operator()(const ReplayOptions& options) const { return run_replay(options); }
};

}  // namespace

int main(int argc, char** argv) {
  return run_program(argc, argv, "--json", [](const Arguments& arguments) {
    return std::visit(Runner{}, parse_mnist(arguments));
  });
}
