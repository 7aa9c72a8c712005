// A web server on 127.0.0.1 for the tests of scripts/fetch_mnist.sh: `http_server FOLDER LOG`.
//
// It prints its port, appends the path of every request to LOG, and ends when its standard input
// does. The first part of a path says how the file of FOLDER that follows is served:
//   /good/F       whole                     /missing/F  as 404
//   /truncated/F  half of it, as if whole   /html/F     as a web page with status 200
//   /cut/F        half of it, then closed   /stall/F    half of it, then nothing more, until the
//   client leaves
#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

constexpr const char* kPage = "<!DOCTYPE html><html><body>Access denied</body></html>\n";

void send_all(int client, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t sent = send(client, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (sent <= 0) return;
    done += static_cast<std::size_t>(sent);
  }
}

std::string head(const std::string& status, const std::string& type, std::size_t length) {
  return "HTTP/1.1 " + status + "\r\nContent-Type: " + type +
         "\r\nContent-Length: " + std::to_string(length) + "\r\nConnection: close\r\n\r\n";
}

/// The path of the request "GET PATH HTTP/1.1", read up to its empty line.
std::string read_request(int client) {
  std::string request;
  std::array<char, 4096> piece{};
  while (request.find("\r\n\r\n") == std::string::npos) {
    const ssize_t got = recv(client, piece.data(), piece.size(), 0);
    if (got <= 0) return {};
    request.append(piece.data(), static_cast<std::size_t>(got));
  }
  const std::size_t from = request.find(' ');
  const std::size_t to = request.find(' ', from + 1);
  return from == std::string::npos || to == std::string::npos
             ? std::string()
             : request.substr(from + 1, to - from - 1);
}

/// Waits until `client` has something to read (its end) or the standard input ends.
void wait_for_leaving(int client) {
  std::array<pollfd, 2> waited{{{client, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}}};
  poll(waited.data(), waited.size(), -1);
}

void serve(int client, const std::string& folder, const std::string& path) {
  const std::size_t slash = path.find('/', 1);
  const std::string mode = path.substr(0, slash);
  std::ifstream file(folder + (slash == std::string::npos ? "" : path.substr(slash)),
                     std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  const std::string half = content.substr(0, content.size() / 2);
  if (mode == "/html") {
    send_all(client, head("200 OK", "text/html", std::string(kPage).size()) + kPage);
  } else if (mode == "/missing" || !file) {
    send_all(client, head("404 Not Found", "text/html", std::string(kPage).size()) + kPage);
  } else if (mode == "/truncated") {
    send_all(client, head("200 OK", "application/gzip", half.size()) + half);
  } else {
    const bool whole = mode == "/good";
    send_all(client, head("200 OK", "application/gzip", content.size()) + (whole ? content : half));
    if (mode == "/stall") wait_for_leaving(client);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: http_server FOLDER LOG\n");
    return 2;
  }
  const std::string folder = argv[1];
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (listener < 0 || bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener, 8) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    std::perror("http_server");
    return 1;
  }
  std::printf("%d\n", ntohs(address.sin_port));
  std::fflush(stdout);
  std::ofstream log(argv[2], std::ios::app);
  while (true) {
    std::array<pollfd, 2> waited{{{listener, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}}};
    if (poll(waited.data(), waited.size(), -1) < 0 || waited[1].revents != 0) return 0;
    const int client = accept(listener, nullptr, nullptr);
    if (client < 0) continue;
    const std::string path = read_request(client);
    log << path << std::endl;
    serve(client, folder, path);
    close(client);
  }
}
