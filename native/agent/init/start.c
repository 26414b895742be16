/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * One start of a small program ahead of the command: the code of every start, in the kernel and the dynamic linker, is
 * then in the emulator's translation cache as the window needs it. The command's environment names the locale and the
 * preloaded libraries, so their files are then in memory too.
 */
#include "agent.h"
#include "nearmiss_trigger.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Time limit: it ends at once; should the host have something else of this name, after this long. */
enum { LONGEST_S = 2 };

void start_ahead(const struct config *config)
{
    /* With an argument it looks at its locale. */
    char *const arguments[] = {"true", "ahead", NULL};
    const pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 3; i++) {
            close(i);
            open("/dev/null", O_RDWR);
        }
        alarm(LONGEST_S);
        execve("/bin/true", arguments, config->envp);
        _exit(127);
    }
    if (child > 0)
        waitpid(child, NULL, 0);
    /* Files read ahead, or work that a run ahead left to the kernel, may be on their way still. */
    uint64_t waited_ms;
    facts_settle(&waited_ms);
}
