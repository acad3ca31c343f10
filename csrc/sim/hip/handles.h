// Live handles of one type: events and streams.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "hip/allocations.h"
#include "hip/api.h"

namespace fasim::hip {

template <typename T>
class Handles {
 public:
  explicit Handles(const char* type) : type_(type) {}

  T* add(T value) {
    auto object = std::make_shared<T>(std::move(value));
    const std::lock_guard lock(mutex_);
    return (live_[object.get()] = object).get();
  }

  void remove(const void* handle) {
    require(handle);
    const std::lock_guard lock(mutex_);
    live_.erase(handle);
  }

  // Throws ApiFailure(hipErrorInvalidHandle) for a handle that is not live.
  std::shared_ptr<T> require(const void* handle) const {
    const std::lock_guard lock(mutex_);
    const auto it = live_.find(handle);
    if (it == live_.end())
      fail(hipErrorInvalidHandle,
           std::string(type_) + " " + hex(handle) + " is not a live " + type_);
    return it->second;
  }

 private:
  const char* const type_;
  mutable std::mutex mutex_;
  std::map<const void*, std::shared_ptr<T>> live_;
};

}  // namespace fasim::hip
