// The order of work on one stream, and the thread that does it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include <semaphore.h>

#include "runtime/delays.h"
#include "runtime/device_api.h"

namespace cusim {

class Queue;

/// A place in a queue: work of this number and before.
struct Ticket {
  Queue* queue = nullptr;  ///< null: nothing to wait for
  std::uint64_t number = 0;

  [[nodiscard]] bool done() const;
  void wait() const;
};

/// Operations that one thread executes in the order in which they were pushed. A queue is never
/// freed, so that a ticket stays valid whatever happens to the stream.
///
/// Who pushes hands its memory over to the thread of the queue but does not see what that has
/// done: only waiting for a ticket orders that way, as on a real device, and ThreadSanitizer
/// reports who forgot to wait. Hence a semaphore, not one lock for both sides.
class Queue {
 public:
  Queue(int device, std::uint64_t id);

  [[nodiscard]] int device() const { return device_; }
  [[nodiscard]] std::uint64_t id() const { return id_; }

  Ticket push(Operation operation);
  /// The ticket of all that was pushed so far.
  Ticket tail();
  /// Ends the thread when all that was pushed is done; nothing may be pushed afterwards.
  void stop();

 private:
  friend struct Ticket;

  struct Node {
    Operation operation;
    Node* next = nullptr;
  };

  void work();

  const int device_;
  const std::uint64_t id_;

  std::mutex push_mutex_;
  Node* back_;
  std::uint64_t pushed_ = 0;
  sem_t available_;
  Node* front_;  ///< already done; owned by the thread

  std::mutex done_mutex_;
  std::condition_variable done_changed_;
  std::uint64_t done_ = 0;

  Delays delays_;
  std::thread thread_;
};

}  // namespace cusim
