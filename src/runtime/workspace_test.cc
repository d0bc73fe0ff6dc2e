#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/runtime.h"

namespace {

// A thread of its own has workspaces of its own, so tests do not see what others left.
template <class F>
void in_new_thread(F f) {
  std::thread(f).join();
}

TEST(Workspace, IsAlignedAndKept) {
  in_new_thread([] {
    tw_ctx* ctx = tw_default_ctx();
    void* first = ctx->workspace_acquire(ctx, 1000);
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
    std::memset(first, 1, 1000);
    ctx->workspace_release(ctx, first);
    EXPECT_EQ(ctx->workspace_acquire(ctx, 500), first);
    ctx->workspace_release(ctx, first);
  });
}

TEST(Workspace, NestsLikeAStack) {
  in_new_thread([] {
    tw_ctx* ctx = tw_default_ctx();
    std::mt19937 random(1);
    struct Piece {
      unsigned char* memory;
      int64_t bytes;
      unsigned char mark;
    };
    std::vector<Piece> stack;
    for (int step = 0; step < 20000; ++step) {
      if (stack.size() < 12 && random() % 2) {
        int64_t bytes = 1 + random() % (random() % 10 == 0 ? 300000 : 3000);
        auto* memory = static_cast<unsigned char*>(ctx->workspace_acquire(ctx, bytes));
        ASSERT_NE(memory, nullptr);
        ASSERT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
        Piece piece{memory, bytes, static_cast<unsigned char>(step)};
        std::memset(memory, piece.mark, bytes);
        stack.push_back(piece);
      } else if (!stack.empty()) {
        Piece piece = stack.back();
        stack.pop_back();
        // Nobody else wrote here meanwhile.
        for (int64_t i = 0; i < piece.bytes; i += 37) ASSERT_EQ(piece.memory[i], piece.mark);
        ASSERT_EQ(piece.memory[piece.bytes - 1], piece.mark);
        ctx->workspace_release(ctx, piece.memory);
      }
    }
  });
}

TEST(Workspace, SettlesInOneBlock) {
  in_new_thread([] {
    tw_ctx* ctx = tw_default_ctx();
    auto call = [&] {
      void* a = ctx->workspace_acquire(ctx, 100000);
      void* b = ctx->workspace_acquire(ctx, 500000);
      void* c = ctx->workspace_acquire(ctx, 2000000);
      ctx->workspace_release(ctx, c);
      ctx->workspace_release(ctx, b);
      ctx->workspace_release(ctx, a);
      return std::pair{a, c};
    };
    call();
    auto second = call();
    int64_t held = tw_workspace_held();
    EXPECT_EQ(call(), second);
    EXPECT_EQ(tw_workspace_held(), held);
    EXPECT_GE(held, 2600000);
  });
}

TEST(Workspace, TwoEmptyOnesDiffer) {
  in_new_thread([] {
    tw_ctx* ctx = tw_default_ctx();
    void* a = ctx->workspace_acquire(ctx, 0);
    void* b = ctx->workspace_acquire(ctx, 0);
    EXPECT_NE(a, b);
    ctx->workspace_release(ctx, b);
    ctx->workspace_release(ctx, a);
    ctx->workspace_release(ctx, nullptr);
  });
}

TEST(Workspace, ThreadsHaveTheirOwn) {
  tw_ctx* ctx = tw_default_ctx();
  void* mine = ctx->workspace_acquire(ctx, 64);
  void* other = nullptr;
  in_new_thread([&] {
    other = ctx->workspace_acquire(ctx, 64);
    ctx->workspace_release(ctx, other);
  });
  EXPECT_NE(mine, other);
  ctx->workspace_release(ctx, mine);
}

TEST(Workspace, ReportsWhenThereIsNoMemory) {
  in_new_thread([] {
    tw_ctx* ctx = tw_default_ctx();
    ctx->error_code = TW_OK;
    EXPECT_EQ(ctx->workspace_acquire(ctx, int64_t{1} << 60), nullptr);
    EXPECT_EQ(ctx->error_code, TW_ERROR_MEMORY);
    EXPECT_EQ(std::string(tw_last_error()).substr(0, 13), "out of memory");
    ctx->error_code = TW_OK;
    EXPECT_EQ(ctx->workspace_acquire(ctx, INT64_MAX), nullptr);
    EXPECT_NE(std::string(tw_last_error()).find("larger than the address space"), std::string::npos);
    ctx->error_code = TW_OK;
    EXPECT_EQ(ctx->workspace_acquire(ctx, -1), nullptr);
    EXPECT_EQ(ctx->error_code, TW_ERROR_MEMORY);
  });
}

TEST(Context, KeepsTheFirstErrorOfACall) {
  tw_ctx* ctx = tw_default_ctx();
  ctx->error_code = TW_OK;
  EXPECT_EQ(tw_report(ctx, TW_ERROR_ASSERTION, "first"), TW_ERROR_ASSERTION);
  EXPECT_EQ(tw_report(ctx, TW_ERROR_MEMORY, "second"), TW_ERROR_MEMORY);
  EXPECT_STREQ(tw_last_error(), "first");
  EXPECT_EQ(ctx->error_code, TW_ERROR_ASSERTION);
}

TEST(Context, CutsEndlessMessages) {
  tw_ctx* ctx = tw_default_ctx();
  ctx->error_code = TW_OK;
  tw_report(ctx, TW_ERROR_ASSERTION, std::string(100000, 'x').c_str());
  std::string kept = tw_last_error();
  EXPECT_LT(kept.size(), 3000u);
  EXPECT_EQ(kept.substr(kept.size() - 4), "x...");
}

TEST(Context, ErrorsBelongToTheirThread) {
  tw_ctx* ctx = tw_default_ctx();
  ctx->error_code = TW_OK;
  tw_report(ctx, TW_ERROR_ASSERTION, "here");
  in_new_thread([] { EXPECT_STREQ(tw_last_error(), ""); });
  EXPECT_STREQ(tw_last_error(), "here");
}

TEST(Context, OwnContextsHaveTheirOwnSink) {
  tw_ctx own;
  tw_ctx_init(&own);
  tw_report(&own, TW_ERROR_ASSERTION, "dropped");
  EXPECT_EQ(own.error_code, TW_ERROR_ASSERTION);
  std::string kept;
  own.user = &kept;
  own.error_code = TW_OK;
  own.set_error = [](tw_ctx* ctx, int32_t, const char* message) { *static_cast<std::string*>(ctx->user) = message; };
  tw_report(&own, TW_ERROR_ASSERTION, "kept");
  EXPECT_EQ(kept, "kept");
}

TEST(Symbols, AreThoseOfTheAbi) {
  int32_t count = 0;
  const tw_runtime_symbol* symbols = tw_runtime_symbols(&count);
  bool found = false;
  for (int32_t i = 0; i < count; ++i) {
    EXPECT_EQ(std::string(symbols[i].name).substr(0, 3), "tw_");
    ASSERT_NE(symbols[i].address, nullptr);
    if (std::string(symbols[i].name) == "tw_check_args") {
      found = symbols[i].address == reinterpret_cast<void*>(&tw_check_args);
    }
  }
  EXPECT_TRUE(found);
}

}  // namespace
