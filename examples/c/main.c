/* Calls a kernel that Tilewright exported, from C. It needs the library and its header, nothing else:
 *
 *   tilewright compile examples/01_matmul.py --out FOLDER      (or tune: then it is the fastest kernel found)
 *   cc -std=c11 -I FOLDER examples/c/main.c FOLDER/matmul.so -Wl,-rpath,FOLDER -o main && ./main
 */
#include <stdio.h>
#include <stdlib.h>

#include "matmul.h"

#ifndef SIZE
#define SIZE 1024
#endif

int main(void) {
  float* a = aligned_alloc(64, sizeof(float) * SIZE * SIZE);
  float* b = aligned_alloc(64, sizeof(float) * SIZE * SIZE);
  float* c = aligned_alloc(64, sizeof(float) * SIZE * SIZE);
  if (!a || !b || !c) return 1;
  for (int i = 0; i < SIZE * SIZE; ++i) {
    a[i] = (float)(i % 7 - 3);
    b[i] = (float)(i % 5 - 2);
  }
  int status = matmul_arrays(a, b, c);
  if (status != 0) {
    printf("matmul failed with code %d: %s\n", status, matmul_last_error());
    return 1;
  }
  float expected = 0;
  for (int k = 0; k < SIZE; ++k) expected += a[k] * b[k * SIZE + 1];
  printf("C[0, 1] = %g, expected %g\n", (double)c[1], (double)expected);
  status = c[1] == expected ? 0 : 1;
  free(a);
  free(b);
  free(c);
  return status;
}
