// lockstep_bench: measures Lockstep on this machine.
#include <iostream>

#include "apps/lockstep_bench/ops.h"
#include "apps/lockstep_bench/peers.h"
#include "apps/lockstep_bench/scaling.h"
#include "apps/program.h"

namespace {

using namespace lockstep::apps;

struct Runner {
  ExitCode operator()(const PrintText& print) const {
    std::cout << print.text;
    return ExitCode::ok;
  }
  ExitCode operator()(const ScalingOptions& options) const { return run_scaling(options); }
  ExitCode operator()(const OpsOptions& options) const { return run_ops(options); }
  ExitCode operator()(const PeersOptions& options) const { return run_peers(options); }
  ExitCode operator()(const PeerOptions& options) const { return run_peer(options); }
};

}  // namespace

int main(int argc, char** argv) {
  return run_program(argc, argv, "--json=-", [](const Arguments& arguments) {
    return std::visit(Runner{}, parse_bench(arguments));
  });
}
