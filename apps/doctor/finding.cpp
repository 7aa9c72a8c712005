#include "apps/doctor/finding.h"

#include <algorithm>
#include <array>
#include <sstream>

#include "lockstep/core/error.h"

#include "apps/text.h"

namespace lockstep::apps {

namespace {

constexpr std::size_t kCheckWidth = 14;

const char* name_of(Verdict verdict) {
  constexpr std::array<const char*, 3> kNames = {"pass", "warn", "fail"};
  return kNames[static_cast<std::size_t>(verdict)];
}

std::int64_t count(const Findings& findings, Verdict verdict) {
  return std::count_if(findings.begin(), findings.end(),
                       [&](const Finding& finding) { return finding.verdict == verdict; });
}

/// The lines of `text`, the first behind `opening`, the others below it.
void write_lines(std::ostream& out, const std::string& opening, const std::string& text) {
  std::istringstream lines(text);
  std::string start = opening;
  for (std::string line; std::getline(lines, line);) {
    out << start << line << '\n';
    start.assign(opening.size(), ' ');
  }
}

}  // namespace

ExitCode exit_code_of(const Findings& findings) {
  for (const Finding& finding : findings) {
    if (finding.verdict == Verdict::fail) return finding.code;
  }
  return ExitCode::ok;
}

void write_finding(std::ostream& out, const Finding& finding) {
  const std::string opening =
      message(name_of(finding.verdict), "  ", left(finding.check, kCheckWidth), "  ");
  write_lines(out, opening, finding.text);
  if (!finding.remedy.empty()) {
    write_lines(out, std::string(opening.size(), ' ') + "-> ", finding.remedy);
  }
  out << std::flush;
}

void write_summary(std::ostream& out, const Findings& findings) {
  out << count(findings, Verdict::pass) << " passed, " << count(findings, Verdict::warn)
      << " warned, " << count(findings, Verdict::fail) << " failed\n"
      << std::flush;
}

Json check_event(const Finding& finding) {
  Json event = make_event("check");
  event["check"] = finding.check;
  event["verdict"] = name_of(finding.verdict);
  event["text"] = finding.text;
  event["remedy"] = finding.remedy;
  event["details"] = finding.details;
  return event;
}

Json doctor_event(const Findings& findings) {
  Json event = make_event("result");
  event["command"] = "doctor";
  event["passed"] = count(findings, Verdict::pass);
  event["warned"] = count(findings, Verdict::warn);
  event["failed"] = count(findings, Verdict::fail);
  event["exit_code"] = static_cast<int>(exit_code_of(findings));
  return event;
}

}  // namespace lockstep::apps
