// The binary call from C++: one state and one z in, joint targets out, over a connection that is kept open.
// POSIX sockets only.   c++ -std=c++17 -O2 act.cpp -o act && ./act 127.0.0.1 8000 69 4
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

class Skills {
 public:
  Skills(const char* host, int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1 ||
        connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("cannot connect");
    int on = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~Skills() { close(socket_); }

  // Joint targets, rad. Numbers travel as little-endian float32, as they lie in the memory of x86 and ARM.
  std::vector<float> act(const std::vector<float>& state, const std::vector<float>& z) {
    std::string request = "POST /act HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
                          "X-Tensors: state=" + std::to_string(state.size()) + ",z=" + std::to_string(z.size()) +
                          "\r\nContent-Length: " + std::to_string(4 * (state.size() + z.size())) + "\r\n\r\n";
    request.append(reinterpret_cast<const char*>(state.data()), 4 * state.size());
    request.append(reinterpret_cast<const char*>(z.data()), 4 * z.size());
    for (size_t sent = 0; sent < request.size();) {
      ssize_t n = ::send(socket_, request.data() + sent, request.size() - sent, 0);
      if (n <= 0) throw std::runtime_error("the connection is lost");
      sent += n;
    }
    std::string answer;
    size_t head;
    while ((head = answer.find("\r\n\r\n")) == std::string::npos) receive(answer);
    size_t at = answer.find("content-length: ");
    if (at == std::string::npos || at > head) throw std::runtime_error("an answer without a length");
    size_t length = std::strtoul(answer.c_str() + at + 16, nullptr, 10);
    while (answer.size() < head + 4 + length) receive(answer);
    if (answer.compare(9, 3, "200") != 0) throw std::runtime_error(answer.substr(head + 4));  // a Problem, as JSON
    std::vector<float> targets(length / 4);
    std::memcpy(targets.data(), answer.data() + head + 4, length);
    return targets;
  }

 private:
  void receive(std::string& into) {
    char part[65536];
    ssize_t n = ::recv(socket_, part, sizeof part, 0);
    if (n <= 0) throw std::runtime_error("the connection is lost");
    into.append(part, n);
  }
  int socket_;
};

int main(int count, char** words) {
  if (count != 5) return std::fprintf(stderr, "act HOST PORT STATE_DIM LATENT_DIM\n"), 2;
  try {
    Skills skills(words[1], std::atoi(words[2]));
    std::vector<float> state(std::atoi(words[3])), z(std::atoi(words[4]));
    state[2] = 0.9f;  // pelvis up, m
    state[3] = 1.0f;  // no rotation, wxyz
    z[0] = 1.0f;      // a point of the unit sphere
    for (float target : skills.act(state, z)) std::printf("%.9g\n", target);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "act: %s\n", error.what());
    return 1;
  }
}
