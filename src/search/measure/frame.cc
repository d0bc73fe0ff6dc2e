#include "search/measure/frame.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "support/hash.h"

namespace tilewright::search {
namespace {

struct Header {
  uint32_t magic;
  uint32_t kind;
  uint64_t size;
  uint64_t checksum;
};

constexpr uint32_t kFrameMagic = 0x50487754;  // "TwHP"
constexpr uint64_t kMaxSize = uint64_t{1} << 31;

uint64_t checksum_of(uint32_t kind, std::string_view payload) {
  Hasher hasher;
  hasher.word(kind);
  hasher.bytes(payload);
  return hasher.finish().lo;
}

Header header_of(uint32_t kind, std::string_view payload) {
  return {kFrameMagic, kind, payload.size(), checksum_of(kind, payload)};
}

bool is_valid(const Header& header) { return header.magic == kFrameMagic && header.size <= kMaxSize; }

bool write_all(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(fd, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    data += written;
    size -= static_cast<size_t>(written);
  }
  return true;
}

bool read_all(int fd, char* data, size_t size) {
  while (size > 0) {
    const ssize_t got = ::read(fd, data, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    data += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

}  // namespace

std::string encode_frame(uint32_t kind, std::string_view payload) {
  const Header header = header_of(kind, payload);
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes += payload;
  return bytes;
}

Result<std::optional<Frame>> FrameReader::next() {
  const auto available = std::string_view(buffer_).substr(begin_);
  Header header;
  // Garbage is recognized by its first bytes, before the rest of a message is awaited.
  const size_t magic_bytes = std::min(available.size(), sizeof header.magic);
  if (std::memcmp(available.data(), &kFrameMagic, magic_bytes) != 0)
    return resource_error("measure/garbage", "the process sent bytes that are not a message");
  if (available.size() < sizeof header) return std::optional<Frame>();
  std::memcpy(&header, available.data(), sizeof header);
  if (!is_valid(header))
    return resource_error("measure/garbage", fmt::format("the process announced a message of {} bytes", header.size));
  if (available.size() - sizeof header < header.size) return std::optional<Frame>();
  Frame frame{header.kind, std::string(available.substr(sizeof header, header.size))};
  if (checksum_of(frame.kind, frame.payload) != header.checksum)
    return resource_error("measure/garbage", "the process sent a message whose checksum is wrong");
  begin_ += sizeof header + header.size;
  if (begin_ == buffer_.size()) {
    buffer_.clear();
    begin_ = 0;
  } else if (begin_ > size_t{1} << 20) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  return std::optional<Frame>(std::move(frame));
}

bool write_frame(int fd, uint32_t kind, std::string_view payload) {
  const Header header = header_of(kind, payload);
  return write_all(fd, reinterpret_cast<const char*>(&header), sizeof header) &&
         write_all(fd, payload.data(), payload.size());
}

std::optional<Frame> read_frame(int fd) {
  Header header;
  if (!read_all(fd, reinterpret_cast<char*>(&header), sizeof header) || !is_valid(header)) return std::nullopt;
  Frame frame{header.kind, std::string(header.size, '\0')};
  if (!read_all(fd, frame.payload.data(), frame.payload.size())) return std::nullopt;
  if (checksum_of(frame.kind, frame.payload) != header.checksum) return std::nullopt;
  return frame;
}

}  // namespace tilewright::search
