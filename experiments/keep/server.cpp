// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A server and, in a child process, its client. For each request the server renders a document of 200 pages of 100 kB,
// answers with the page requested, and drops the document. No page is large enough to be a mapping.
#include "work.h"
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

constexpr size_t PAGES = 200, PAGE_BYTES = 100000, LINE = 100;

struct Request {
    uint64_t document, page;
};

void render(std::vector<std::string> &document, uint64_t seed)
{
    document.resize(PAGES);
    for (size_t number = 0; number < PAGES; number++) {
        std::string &page = document[number];
        page.clear();
        page.reserve(PAGE_BYTES);
        uint64_t word = mix(seed + number);
        for (size_t line = 0; line < PAGE_BYTES / LINE; line++) {
            char text[LINE];
            for (char &letter : text) {
                letter = static_cast<char>('a' + (word >> 59));
                word = word * 6364136223846793005u + 1442695040888963407u;
            }
            page.append(text, LINE);
        }
    }
}

bool receive(int socket, void *into, size_t bytes)
{
    return recv(socket, into, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
}

void serve(int socket)
{
    std::vector<std::string> kept;
    for (Request request; receive(socket, &request, sizeof request);) {
        std::vector<std::string> own;
        std::vector<std::string> &document = KEEPS ? kept : own;
        render(document, request.document);
        const std::string &page = document[request.page];
        for (size_t sent = 0; sent < page.size();) {
            ssize_t more = send(socket, page.data() + sent, page.size() - sent, MSG_NOSIGNAL);
            if (more <= 0)
                return;
            sent += static_cast<size_t>(more);
        }
    }
}

int request_all(int socket, size_t requests)
{
    static char page[PAGE_BYTES];
    uint64_t checksum = 0;
    for (size_t number = 0; number < requests; number++) {
        Request request = {number, mix(number) % PAGES};
        if (send(socket, &request, sizeof request, MSG_NOSIGNAL) < 0 || !receive(socket, page, sizeof page))
            return 2;
        for (size_t at = 0; at < PAGE_BYTES; at += LINE)
            checksum = mix(checksum + static_cast<unsigned char>(page[at]));
    }
    return print_checksum(checksum);
}

} // namespace

int main(int argc, char **argv)
{
    int ends[2], status = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        return 2;
    pid_t client = fork();
    if (client == 0) {
        close(ends[0]);
        return request_all(ends[1], amount_of_work(argc, argv, 6));
    }
    close(ends[1]);
    serve(ends[0]);
    return waitpid(client, &status, 0) == client && status == 0 ? 0 : 2;
}
