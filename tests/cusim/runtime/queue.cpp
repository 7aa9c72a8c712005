#include "runtime/queue.h"

#include <chrono>
#include <utility>
#include <vector>

#include "runtime/settings.h"
#include "runtime/status.h"

namespace cusim {

namespace {

/// Holds every queue for good, where a leak checker finds it.
void keep(const Queue* queue) {
  static std::mutex& mutex = *new std::mutex;
  static auto& all = *new std::vector<const Queue*>;
  const std::lock_guard lock(mutex);
  all.push_back(queue);
}

}  // namespace

bool Ticket::done() const {
  if (!queue) return true;
  const std::lock_guard lock(queue->done_mutex_);
  return queue->done_ >= number;
}

void Ticket::wait() const {
  if (!queue) return;
  std::unique_lock lock(queue->done_mutex_);
  queue->done_changed_.wait(lock, [this] { return queue->done_ >= number; });
}

Queue::Queue(int device, std::uint64_t id)
    : device_(device),
      id_(id),
      back_(new Node),
      front_(back_),
      delays_(id, settings().seed, settings().delay_us) {
  keep(this);
  sem_init(&available_, 0, 0);
  thread_ = std::thread(&Queue::work, this);
}

Ticket Queue::push(Operation operation) {
  Node* node = new Node{std::move(operation)};
  const std::lock_guard lock(push_mutex_);
  back_->next = node;
  back_ = node;
  sem_post(&available_);
  return {this, ++pushed_};
}

Ticket Queue::tail() {
  const std::lock_guard lock(push_mutex_);
  return {this, pushed_};
}

void Queue::stop() {
  push({});
  thread_.join();
}

void Queue::work() {
  for (;;) {
    while (sem_wait(&available_) != 0) {  // a signal came in between
    }
    delete std::exchange(front_, front_->next);
    Operation& operation = front_->operation;
    if (!operation.run) return;
    if (const int pause = delays_.next(); pause > 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(pause));
    }
    execute(operation, device_, id_);
    operation = {};
    {
      const std::lock_guard lock(done_mutex_);
      ++done_;
    }
    done_changed_.notify_all();
  }
}

}  // namespace cusim
