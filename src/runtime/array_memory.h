// Memory of arrays that is reused: freed blocks are not returned to the system.
//
// The first access to a page costs more than several passes over it: the system interrupts the program, and clears the
// page. malloc() returns large blocks to the system as soon as they are freed, so a computation that makes arrays again
// and again pays for each of them. Here, large blocks are parts of regions that stay mapped, in huge pages if the
// system has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

namespace tilewright::runtime {

/// A block of at least `bytes` bytes, aligned to a cache line; all zero with `zeroed`. Null where there is no memory.
void* acquire_array(size_t bytes, bool zeroed);

/// Frees a block of acquire_array(); null is allowed.
void release_array(void* memory);

/// Moves a block of acquire_array() to one of another size, with as much of its contents as that holds. Null where
/// there is no memory: the block stays as it is.
void* resize_array(void* memory, size_t bytes);

/// Bytes of regions that are kept although no block of them is in use.
size_t idle_array_memory();

/// Lets containers take their memory from here.
template <class T>
struct ArrayAllocator {
  using value_type = T;

  ArrayAllocator() = default;
  template <class U>
  ArrayAllocator(const ArrayAllocator<U>&) {}
  T* allocate(size_t count) {
    void* memory = count <= SIZE_MAX / sizeof(T) ? acquire_array(count * sizeof(T), false) : nullptr;
    if (!memory) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t) { release_array(memory); }
  bool operator==(const ArrayAllocator&) const { return true; }
};

}  // namespace tilewright::runtime
