#include <sinew/sinew.h>
#include <stdio.h>

int main(void) {
  sinew_hands* hands = NULL;
  const sinew_status status = sinew_hands_open("missing/model.ckpt", NULL, &hands);
  printf("sinew %s, status %d: %s\n", sinew_version(), (int)status, sinew_last_error());
  sinew_hands_close(hands);
  return status == SINEW_ERROR_NOT_FOUND && hands == NULL ? 0 : 1;
}
