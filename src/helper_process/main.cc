// tilewright-helper: the process in which the search builds or measures candidates (search/measure/serve.h).
#include "search/measure/candidate.h"
#include "search/measure/serve.h"

int main(int argc, char** argv) {
  using namespace tilewright::search;
  return helper_main(argc, argv, compile_candidate, load_candidate);
}
