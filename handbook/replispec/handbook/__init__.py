"""The specification as pages for people: `make site`.

In come the specification, read by the compiler, the cases of the suite, and the Markdown that stands in
docs/ and generated/docs/; out comes a folder of HTML that needs no server and no network.

    knowledge            what is known of a family: messages, machines, clauses, cases, known failures
    places               under which page and anchor each thing is found
    documents            a Markdown page that exists: its links, and the names in it that become links
    subjects, catalogue  pages that are made of the specification: clauses, machines, releases, defects
    diagrams             a machine as a picture whose states and edges lead to what is said of them
    lessons              steps in a teaching page, taken by the generated machine and compared
    book                 all pages, with what leads to each of them
    printing             Sphinx makes HTML of them
    checking             every link and anchor of the HTML, and that nothing comes from another host

Words: a *page* has a path below the site, without suffix. A *reference* is a link to a page, written
`ref:PATH#ANCHOR` until all pages are known. What leads to a page is shown at its end.

Begin with `book.py`.
"""
