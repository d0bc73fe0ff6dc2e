// Messages as they travel over a pipe: a header with a magic number, kind, length and checksum, then the payload.
//
// The other side may be a process that a miscompiled kernel has just overwritten, so nothing that is read is believed:
// a wrong magic number, an absurd length or a wrong checksum is an error, after which the process is replaced.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "support/result.h"

namespace tilewright::search {

struct Frame {
  uint32_t kind = 0;
  std::string payload;
};

std::string encode_frame(uint32_t kind, std::string_view payload);

/// Cuts a stream of bytes into frames, however they arrive.
class FrameReader {
 public:
  void append(std::string_view bytes) { buffer_.append(bytes); }
  /// None: the next frame is not complete yet. An error: the stream is garbage from here on.
  Result<std::optional<Frame>> next();

 private:
  std::string buffer_;
  size_t begin_ = 0;
};

/// For the helper, which only waits. False, or nothing: the other side is gone or sends garbage.
bool write_frame(int fd, uint32_t kind, std::string_view payload);
std::optional<Frame> read_frame(int fd);

/// Writes the fields of a message, in order. The reading counterpart has the same interface, so that one function
/// `template <class A> void fields(A&)` of a message serves both.
class Encoder {
 public:
  template <class... Values>
  void operator()(const Values&... values) {
    (put(values), ...);
  }
  std::string take() { return std::move(bytes_); }

 private:
  template <class T>
  void put(const T& value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put(const std::string& text) {
    put(static_cast<uint64_t>(text.size()));
    bytes_ += text;
  }
  template <class T>
  void put(const std::vector<T>& values) {
    put(static_cast<uint64_t>(values.size()));
    for (const T& value : values) put(value);
  }

  std::string bytes_;
};

/// Reads what Encoder wrote. Bytes that are missing set ok() to false and leave the remaining fields as they were.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : bytes_(bytes) {}

  template <class... Values>
  void operator()(Values&... values) {
    (get(values), ...);
  }
  /// Whether exactly all bytes were read.
  bool ok() const { return ok_ && bytes_.empty(); }

 private:
  template <class T>
  void get(T& value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    if (!has(sizeof value)) return;
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
  }
  void get(std::string& text) {
    uint64_t size = 0;
    get(size);
    if (!has(size)) return;
    text.assign(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
  }
  template <class T>
  void get(std::vector<T>& values) {
    uint64_t size = 0;
    get(size);
    // No element is smaller than a byte, so a length beyond the rest is not a reason to allocate.
    if (!has(size)) return;
    values.clear();
    for (uint64_t i = 0; i < size && ok_; ++i) {
      T value{};
      get(value);
      values.push_back(std::move(value));
    }
  }
  bool has(uint64_t size) { return ok_ = ok_ && size <= bytes_.size(); }

  std::string_view bytes_;
  bool ok_ = true;
};

template <class Message>
std::string encode_message(const Message& message) {
  Encoder encoder;
  const_cast<Message&>(message).fields(encoder);  // an Encoder only reads
  return encode_frame(static_cast<uint32_t>(Message::kKind), encoder.take());
}

/// False: not such a message.
template <class Message>
bool decode_message(const Frame& frame, Message& message) {
  if (frame.kind != static_cast<uint32_t>(Message::kKind)) return false;
  Decoder decoder(frame.payload);
  message.fields(decoder);
  return decoder.ok();
}

template <class Message>
bool write_message(int fd, const Message& message) {
  Encoder encoder;
  const_cast<Message&>(message).fields(encoder);
  return write_frame(fd, static_cast<uint32_t>(Message::kKind), encoder.take());
}

}  // namespace tilewright::search
