#include "search/measure/frame.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "search/measure/messages.h"

namespace tilewright::search {
namespace {

TEST(Frame, ArrivesWholeHoweverItIsCut) {
  const std::string stream = encode_frame(1, "one") + encode_frame(2, "") + encode_frame(3, std::string(1000, 'x'));
  for (size_t step : {size_t{1}, size_t{7}, stream.size()}) {
    FrameReader reader;
    std::vector<Frame> frames;
    for (size_t at = 0; at < stream.size(); at += step) {
      reader.append(std::string_view(stream).substr(at, step));
      while (true) {
        auto frame = reader.next();
        ASSERT_TRUE(frame.ok());
        if (!*frame) break;
        frames.push_back(**frame);
      }
    }
    ASSERT_EQ(frames.size(), 3u);
    EXPECT_EQ(frames[0].payload, "one");
    EXPECT_EQ(frames[1].payload, "");
    EXPECT_EQ(frames[2].kind, 3u);
    EXPECT_EQ(frames[2].payload.size(), 1000u);
  }
}

TEST(Frame, GarbageIsNoticedAtOnce) {
  const std::string good = encode_frame(1, "payload");
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x40);
    FrameReader reader;
    reader.append(bad);
    auto frame = reader.next();
    // A longer length is the one change that is not known before the missing bytes are there.
    const bool waits = frame.ok() && !*frame && i >= 8 && i < 16;
    EXPECT_TRUE(waits || (!frame.ok() && frame.error().code == "measure/garbage")) << i;
  }
  FrameReader reader;
  reader.append("h");
  EXPECT_FALSE(reader.next().ok());
}

TEST(Frame, TravelsThroughAPipe) {
  int fds[2];
  ASSERT_EQ(::pipe(fds), 0);
  ASSERT_TRUE(write_frame(fds[1], 5, "hello"));
  auto frame = read_frame(fds[0]);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->kind, 5u);
  EXPECT_EQ(frame->payload, "hello");
  ASSERT_EQ(::write(fds[1], "garbage of more than 24 bytes", 29), 29);
  EXPECT_FALSE(read_frame(fds[0]));
  ::close(fds[1]);
  EXPECT_FALSE(read_frame(fds[0]));
  ::close(fds[0]);
}

TEST(Messages, RoundTrip) {
  HelperSetup setup;
  setup.cpus = {1, 3};
  setup.memory_limit = 5;
  setup.arguments = {{"A", DataType::float_(32), {2, 3}, ArgumentRole::kInOut, 16}, {"B", DataType::bool_(), {}}};
  setup.scalars = {-1};
  FrameReader reader;
  reader.append(encode_message(setup));
  const Frame frame = **reader.next();
  HelperSetup copy;
  ASSERT_TRUE(decode_message(frame, copy));
  EXPECT_EQ(copy.cpus, setup.cpus);
  ASSERT_EQ(copy.arguments.size(), 2u);
  EXPECT_EQ(copy.arguments[0].name, "A");
  EXPECT_EQ(copy.arguments[0].shape, setup.arguments[0].shape);
  EXPECT_EQ(copy.arguments[0].role, ArgumentRole::kInOut);
  EXPECT_EQ(copy.arguments[0].alignment, 16);
  EXPECT_EQ(copy.arguments[1].dtype, DataType::bool_());
  EXPECT_EQ(copy.scalars, setup.scalars);
  BuildRequest other;
  EXPECT_FALSE(decode_message(frame, other));
}

TEST(Messages, NoCutOrGarbledMessageIsBelieved) {
  TurnsRequest request;
  request.objects = {"abc", "de"};
  request.entries = {"main", "main"};
  FrameReader reader;
  reader.append(encode_message(request));
  const Frame whole = **reader.next();
  for (size_t size = 0; size < whole.payload.size(); ++size) {
    TurnsRequest copy;
    EXPECT_FALSE(decode_message(Frame{whole.kind, whole.payload.substr(0, size)}, copy)) << size;
  }
  for (size_t i = 0; i < whole.payload.size(); ++i) {
    Frame garbled = whole;
    garbled.payload[i] = '\xff';
    TurnsRequest copy;
    decode_message(garbled, copy);  // true or false, but no crash and no absurd allocation
  }
  TurnsRequest copy;
  EXPECT_FALSE(decode_message(Frame{whole.kind, whole.payload + "x"}, copy));
}

}  // namespace
}  // namespace tilewright::search
